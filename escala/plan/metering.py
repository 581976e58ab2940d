"""Rules for what `[measure]` says of meters and parts: names that exist, power and memory of what there is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import get_args

from escala.meters import METER_NAMES
from escala.plan.explain import Fault, no_choice
from escala.plan.locate import Path
from escala.plan.words import dotted
from escala.terms.experiment import Device, MeasureSpec

_OWN = re.compile(r"[^:\s]+:[^:\s]+")
_PART = re.compile(rf"({'|'.join(get_args(Device))})(:(0|[1-9][0-9]{{0,3}}))?", re.ASCII)


def meter_faults(measure: MeasureSpec) -> Iterator[Fault]:
    """Meters that there are not, or twice, and rated power or memory of what is no part of a machine."""
    for index, name in enumerate(measure.meters):
        path: Path = ("measure", "meters", index)
        if name not in METER_NAMES and not _OWN.fullmatch(name):
            yield no_choice(name, [*METER_NAMES, "module:factory"], path)
        elif name in measure.meters[:index]:
            yield Fault("CFG-DUP", path, f"meter {name} is named twice", "", "take one away")
    parts = {"tdp_w": measure.tdp_w, "memory_gib": measure.memory_gib}
    for table, key in [(table, key) for table, keys in parts.items() for key in keys]:
        if not _PART.fullmatch(key) or key.startswith("cpu:"):
            path = ("measure", table, key)
            yield Fault("CFG-KEY", path, f"{dotted(path)} is no part of a machine", "cpu, cuda, or cuda:N")
