"""Rated power times utilisation, for parts that no meter reads. Always marked estimated."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, final

from escala.meters.base import Bench, Channel, Part, PowerMeter, Sample
from escala.meters.nvidia import Board, boards_of, names_of, start, stop
from escala.meters.nvml import utilisation
from escala.meters.processor import cpu_seconds
from escala.meters.tdp import board_w, processor_w
from escala.meters.visible import plain
from escala.terms.errors import Unavailable
from escala.terms.host import Device

CPUINFO = Path("/proc/cpuinfo")
# Shares over less than this are rounded by the system's clock tick to worthless figures.
UPDATE_S = 0.1

Share = Callable[[], float | None]
"""How much of the time a part worked lately, 0 to 1; None before it can be told. Raises `Unavailable`."""


class Source:
    """A part with its rated watts and its share, or the reason why the one or the other is not known."""

    def __init__(
        self, where: str, part: Part, watts: float = 0.0, share: Share | None = None, reason: str = ""
    ) -> None:
        self.channel = (
            Channel(where, part, reason=reason)
            if share is None
            else Channel(where, part, watts="estimated", update_s=UPDATE_S)
        )
        self._watts = watts
        self._share = share

    def sample(self) -> Sample:
        """Watts and utilisation now."""
        if self._share is None:
            return Sample(reason=self.channel.reason)
        try:
            share = self._share()
        except Unavailable as reason:
            return Sample(reason=str(reason))
        return Sample() if share is None else Sample(watts=self._watts * share, utilisation=share)


class Load:
    """The share of the whole machine's processors: for a machine of several packages, they are one part.

    Not `psutil.cpu_percent`: it counts for every thread by itself, and samples come from two.
    """

    def __init__(self) -> None:
        import psutil

        self._busy, self._total = cpu_seconds()
        self._cpus = psutil.cpu_count() or 1
        self._last: float | None = None

    def __call__(self) -> float | None:
        busy, total = cpu_seconds()
        if total - self._total >= UPDATE_S * self._cpus:
            self._last = min(1.0, max(0.0, (busy - self._busy) / (total - self._total)))
            self._busy, self._total = busy, total
        return self._last


def open_estimate(bench: Bench) -> PowerMeter:
    """The processors as one part, and every device, but what a meter reads already. Raises `Unavailable`."""
    return opened(bench, CPUINFO)


def opened(bench: Bench, cpuinfo: Path) -> PowerMeter:
    """The meter, with `cpuinfo` to count packages by. Raises `Unavailable` where no part can be estimated."""
    sources = list[Source]()
    if "cpu" not in bench.covered:
        sources.append(_processor(bench, cpuinfo))
    devices = [device for device in bench.host.devices if device.key not in bench.covered]
    nvml, shares, why_not = _shares(bench) if devices else (None, {}, "")
    sources += [_device(device, bench.tdp_w, shares.get(device.key), why_not) for device in devices]
    meter = Estimate(sources, nvml)
    if sources and all(source.channel.reason is not None for source in sources):
        meter.close()
        raise Unavailable("; ".join(f"{source.channel.where}: {source.channel.reason}" for source in sources))
    return meter


@final
class Estimate(PowerMeter):
    """Watts as rated power x utilisation: 0 W for a part at rest, which is less than it takes."""

    def __init__(self, sources: Sequence[Source], nvml: Any = None) -> None:
        self._sources = tuple(sources)
        self._nvml = nvml

    @property
    def channels(self) -> tuple[Channel, ...]:
        return tuple(source.channel for source in self._sources)

    def read(self) -> tuple[Sample, ...]:
        return tuple(source.sample() for source in self._sources)

    def close(self) -> None:
        if self._nvml is not None:
            stop(self._nvml)


def packages(cpuinfo: Path) -> int:
    """How many processor packages Linux lists in `/proc/cpuinfo`; 1 where it lists none.

    Raises `Unavailable` in a virtual machine: it has a share of a processor, and nobody tells it how much of it.
    """
    try:
        text = cpuinfo.read_text(errors="replace")
    except OSError:
        return 1
    if re.search(r"^flags\s*:.*\bhypervisor\b", text, re.MULTILINE):
        raise Unavailable("a virtual machine has only a share of its processor's rated power: give measure.tdp_w.cpu")
    return max(1, len(set(re.findall(r"^physical id\s*:\s*(\d+)", text, re.MULTILINE))))


def _processor(bench: Bench, cpuinfo: Path) -> Source:
    watts = bench.tdp_w.get("cpu")
    if watts is None:
        rated = processor_w(bench.host.cpu)
        if rated is None:
            return Source("cpu", "cpu", reason="its rated power is not known: give measure.tdp_w.cpu")
        try:
            watts = rated * packages(cpuinfo)
        except Unavailable as reason:
            return Source("cpu", "cpu", reason=str(reason))
    try:
        return Source("cpu", "cpu", watts, Load())
    except OSError as error:
        return Source("cpu", "cpu", reason=f"its utilisation cannot be read: {error.strerror}")


def _device(device: Device, tdp_w: Mapping[str, float], share: Share | None, why_not: str) -> Source:
    watts = tdp_w.get(device.key, tdp_w.get(device.kind, board_w(device.name)))
    if watts is None:
        reason = f"its rated power is not known: give measure.tdp_w.{device.kind}"
        return Source(device.key, "device", reason=reason)
    if share is None:
        return Source(device.key, "device", reason=f"its utilisation cannot be read: {why_not}")
    return Source(device.key, "device", watts, share)


def _shares(bench: Bench) -> tuple[Any, dict[str, Share], str]:
    """NVML, the share of every device that it can tell, by name, and why not of the others."""
    why_not = "the NVIDIA driver does not tell it"
    try:
        nvml = start()
    except Unavailable as reason:
        return None, {}, str(reason)
    try:
        boards = boards_of(nvml)
        names = names_of(boards, bench).of
    except Unavailable as reason:
        nvml.nvmlShutdown()
        return None, {}, str(reason)
    told = {names[plain(board.uuid)]: board for board in boards if plain(board.uuid) in names}
    shares = {name: _share(nvml, board) for name, board in told.items() if utilisation(nvml, board) is not None}
    return nvml, shares, why_not


def _share(nvml: Any, board: Board) -> Share:
    def share() -> float:
        found = utilisation(nvml, board)
        if found is None:
            raise Unavailable("its utilisation was not told")
        return found

    return share
