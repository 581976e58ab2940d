"""Which execution choices a trial cannot have on this host, with this network and these data."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from escala.execution.segments import no_blocks
from escala.plan.preflight import Facts
from escala.terms.experiment import ExecutionSpec
from escala.terms.host import Host
from escala.terms.trial import Seat

RESIDENT_SHARE = 0.8
"""Part of a device's memory that the data may take; the rest is for the network and its activations."""
_COMPILED_ON = ("cpu", "cuda", "xpu")


def choice_unfit(execution: ExecutionSpec, kind: str, seats: Sequence[Seat], facts: Facts, host: Host) -> str | None:
    """The first reason why trials on devices of this kind cannot have what `execution` asks for; None: they can."""
    if execution.memory_format == "channels_last" and not facts.images:
        return f"channels_last lays out images for convolutions; {facts.spec.name} on {facts.data} has no images"
    if execution.activation_checkpointing and facts.segments < 2:
        return no_blocks(facts.segments)
    if execution.compile and (reason := _no_compiler(kind)):
        return reason
    if execution.compile == "tuned" and kind == "cpu":
        return "compile = tuned measures kernels of GPUs; on processors it would be compile = true under another name"
    if execution.capture and (reason := _no_capture(execution, kind, seats)):
        return reason
    if execution.dropout_kernel == "packed" and (reason := _no_packing(execution, kind, facts)):
        return reason
    if execution.feed == "resident":
        return _no_room(kind, seats, facts, host)
    return None


def _no_packing(execution: ExecutionSpec, kind: str, facts: Facts) -> str | None:
    if kind != "cpu":
        return f"dropout_kernel = packed is for processors; {kind} draws all its numbers at once"
    if execution.by_row:
        return "dropout by row has numbers of its own, so dropout_kernel = packed has nothing to draw"
    if not facts.packs:
        return f"{facts.spec.name} has no nn.Dropout for dropout_kernel = packed to stand in for"
    return None


def _no_compiler(kind: str) -> str | None:
    if kind not in _COMPILED_ON:
        return f"compile is for {', '.join(_COMPILED_ON)}; torch's way for {kind} is not finished"
    # As torch itself looks for it.
    compiler = os.environ.get("CXX", "").split(" ")[0] or ("clang++" if sys.platform == "darwin" else "g++")
    if shutil.which(compiler) is None:
        return f"compile needs a C++ compiler, and there is no {compiler}; install one, or name yours in CXX"
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        return "compile needs Python's header files (Python.h); install the package python3-dev or its like"
    if kind != "cpu" and find_spec("triton") is None:
        return f"compile on {kind} needs the package triton"
    return None


def _no_capture(execution: ExecutionSpec, kind: str, seats: Sequence[Seat]) -> str | None:
    """Whatever the host decides in a step would be decided once, when it is recorded."""
    if kind != "cuda":
        return f"capture needs a CUDA device, whose graphs it records; this is {kind}"
    if len({(seat.node, seat.devices) for seat in seats}) < len(seats):
        return "capture needs a device for each seat: seats that share one meet through the host"
    if execution.precision == "fp16":
        return "capture cannot have fp16, whose loss scaling decides on the host which steps to skip; use bf16"
    if execution.batchnorm.startswith("ghost"):
        return f"batchnorm = {execution.batchnorm} keeps account of its passes on the host, which capture leaves out"
    if execution.unused == "detect":
        return "unused = detect looks on the host in every step, which capture leaves out"
    if execution.activation_checkpointing:
        return "capture has not been tried with activation_checkpointing, which keeps generators on the host"
    if execution.compression == "powersgd":
        return "compression = powersgd counts its steps on the host, which capture leaves out"
    return None


def _no_room(kind: str, seats: Sequence[Seat], facts: Facts, host: Host) -> str | None:
    """On a CPU resident data are the same as any, and lie where they lie."""
    if kind == "cpu" or not seats:
        return None
    data = facts.row_bytes * sum(facts.use.rows.values())
    sharing = Counter((seat.node, seat.devices[0]) for seat in seats)
    memory = {device.key: device.memory_bytes for device in host.of_kind(kind)}
    for (_, device), times in sharing.items():
        room = int(RESIDENT_SHARE * memory[device])
        if data * times > room:
            shared = "" if times == 1 else f"{times} seats x "
            return (
                f"feed = resident puts {shared}{data:,} bytes of data on {device}, "
                f"which has {memory[device]:,} bytes and may give {room:,} of them; use feed = host"
            )
    return None
