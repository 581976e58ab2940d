"""The machine as a Host. Imports torch, so only child processes call it."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from pathlib import Path

import psutil

from escala import __version__
from escala.plan.cores import usable_cores
from escala.store.scrub import recorded_environment
from escala.terms.host import Device, Host

_RECORDED_PACKAGES = ("torch", "numpy", "triton")


def probe() -> Host:
    """What this process can use."""
    import torch

    software = {"escala": __version__, "python": platform.python_version()}
    for package in _RECORDED_PACKAGES:
        try:
            software[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    # The build tag (+cpu, +cu130) is in torch's own version only.
    software["torch"] = str(torch.__version__)
    if torch.cuda.is_available():
        software["cuda"] = str(torch.version.cuda)
        software["cudnn"] = str(torch.backends.cudnn.version())
        software["nccl"] = ".".join(str(part) for part in torch.cuda.nccl.version())
    return Host(
        cpu=_processor(),
        cores=usable_cores(),
        memory_bytes=psutil.virtual_memory().total,
        system=f"{platform.system()} {platform.release()}",
        devices=_devices(),
        software=software,
        environment=recorded_environment(os.environ),
        name=platform.node(),
    )


def _devices() -> tuple[Device, ...]:
    import torch

    if torch.cuda.is_available():
        found = []
        for index in range(torch.cuda.device_count()):
            card = torch.cuda.get_device_properties(index)
            uuid, capability = str(getattr(card, "uuid", "")), f"{card.major}.{card.minor}"
            found.append(Device("cuda", index, card.name, card.total_memory, uuid, capability))
        return tuple(found)
    if sys.platform == "darwin" and torch.backends.mps.is_available():
        return (Device("mps", 0, "Apple GPU", psutil.virtual_memory().total),)
    if hasattr(torch, "xpu") and torch.xpu.is_available():
        return tuple(
            Device(
                "xpu", index, torch.xpu.get_device_name(index), torch.xpu.get_device_properties(index).total_memory
            )
            for index in range(torch.xpu.device_count())
        )
    return ()


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
