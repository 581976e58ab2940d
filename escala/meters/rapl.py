"""Processor packages and memory by the energy counters of Linux' powercap tree."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import final

from escala.meters.base import Bench, Channel, Part, PowerMeter, Sample
from escala.terms.errors import Unavailable
from escala.terms.printable import printable

ROOT = Path("/sys/class/powercap")
# Intel's manual, volume 3B, "RAPL interfaces": the counters are renewed about once a millisecond.
UPDATE_S = 0.001

# Not `intel-rapl-mmio:*`: the same package by another register. Processors of AMD stand under Intel's name, too.
_ZONE = re.compile(r"intel-rapl:\d+(?::\d+)?", re.ASCII)
_COUNT = re.compile(r"\d{1,20}", re.ASCII)
_PACKAGE = re.compile(r"package-[\w-]+", re.ASCII)


def open_rapl(bench: Bench) -> PowerMeter:
    """Every package and its memory, but those that a meter reads already. Raises `Unavailable`."""
    return opened(ROOT, bench)


def opened(root: Path, bench: Bench) -> PowerMeter:
    """The meter over a powercap tree at `root`. Raises `Unavailable` where no zone of it can be read."""
    if not root.is_dir():
        raise Unavailable(f"this machine has no powercap tree at {root}")
    zones = _zones(root)
    if not zones:
        raise Unavailable(f"the powercap tree at {root} has no processor's zone")
    reasons = [zone.reason for zone in zones if zone.reason is not None]
    if len(reasons) == len(zones):
        raise Unavailable(reasons[0])
    return Rapl([zone for zone in zones if not ({zone.where, zone.part} & bench.covered)])


class Zone:
    """One counter of microjoules, carried on where it wraps round at `span` microjoules."""

    def __init__(self, where: str, part: Part, folder: Path) -> None:
        self.where = where
        self.part = part
        self._file = folder / "energy_uj"
        self._span: int | None = None
        self._before = 0
        self._carried = 0
        self.reason: str | None = None
        try:
            self._span = _number(folder / "max_energy_range_uj")
        except Unavailable:
            # Without it, a counter that wraps round is one that ran backwards.
            self._span = None
        try:
            self._before = _number(self._file)
        except Unavailable as reason:
            self.reason = str(reason)

    def joules(self) -> float:
        """Joules since some moment in the past. Raises `Unavailable`."""
        now = _number(self._file)
        step = now - self._before
        # Wrapped round, it came from near the top; one that ran backwards came from near where it is now.
        if step < 0 and self._span is not None and step + self._span < self._span / 2:
            self._carried += self._span
        self._before = now
        return (self._carried + now) / 1e6


@final
class Rapl(PowerMeter):
    """Joules by `energy_uj` and `max_energy_range_uj` of each zone.

    Source: the Linux kernel's documentation, "Power Capping Framework".
    """

    def __init__(self, zones: Sequence[Zone]) -> None:
        self._zones = tuple(zones)

    @property
    def channels(self) -> tuple[Channel, ...]:
        return tuple(
            Channel(zone.where, zone.part, joules="counter", update_s=UPDATE_S)
            if zone.reason is None
            else Channel(zone.where, zone.part, reason=zone.reason)
            for zone in self._zones
        )

    def read(self) -> tuple[Sample, ...]:
        return tuple(_sample(zone) for zone in self._zones)

    def close(self) -> None:
        """Nothing is held open: each reading opens its file."""


def _sample(zone: Zone) -> Sample:
    if zone.reason is not None:
        return Sample(reason=zone.reason)
    try:
        return Sample(joules=zone.joules())
    except Unavailable as reason:
        return Sample(reason=str(reason))


def _zones(root: Path) -> list[Zone]:
    """Packages and memory; the whole platform where there is no package, since it holds them."""
    folders = {path.name: path for path in sorted(root.iterdir()) if _ZONE.fullmatch(path.name)}
    for outer in tuple(folders.values()):
        # The kernel lists inner zones beside the outer ones, too: each is read once.
        for path in sorted(outer.iterdir()) if outer.is_dir() else ():
            if _ZONE.fullmatch(path.name):
                folders.setdefault(path.name, path)
    names = {name: _name(path) for name, path in folders.items()}
    zones: dict[str, Zone] = {}
    for name, path in sorted(folders.items(), key=lambda item: [int(part) for part in item[0].split(":")[1:]]):
        if _PACKAGE.fullmatch(names[name]):
            zones.setdefault(names[name], Zone(names[name], "cpu", path))
        elif names[name] == "dram":
            outer_name = names.get(name.rpartition(":")[0], "")
            number = outer_name.removeprefix("package-") if _PACKAGE.fullmatch(outer_name) else name.split(":")[1]
            zones.setdefault(f"dram-{number}", Zone(f"dram-{number}", "memory", path))
    if not any(zone.part == "cpu" for zone in zones.values()):
        platform = next((path for name, path in folders.items() if names[name] == "psys"), None)
        if platform is not None:
            return [Zone("psys", "cpu", platform)]
    return list(zones.values())


def _name(folder: Path) -> str:
    try:
        return (folder / "name").read_text(errors="replace").strip()
    except OSError:
        return ""


def _number(path: Path) -> int:
    """What a file of the tree says, not below 0. Raises `Unavailable`."""
    try:
        text = path.read_bytes()[:64].decode(errors="replace").strip()
    except PermissionError:
        raise Unavailable(f"permission denied on {path}") from None
    except FileNotFoundError:
        raise Unavailable(f"{path} is gone") from None
    except OSError as error:
        raise Unavailable(f"{path} cannot be read: {error.strerror}") from None
    if not _COUNT.fullmatch(text):
        raise Unavailable(f"{path} says {printable(text)!r}, which is no number of microjoules")
    return int(text)
