"""Less memory for a seat than its devices have, so that they stand in for smaller ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch

from escala.terms.errors import Unfit
from escala.terms.limits import limit_of


@contextmanager
def limited(devices: Sequence[str], memory_gib: Mapping[str, float]) -> Iterator[None]:
    """Within it a seat on these devices runs out of memory where devices of that size would.

    On a GPU what torch's allocator takes is limited. On a CPU it is the data of the process, so far as they are not
    there yet: a process that stands for several devices may have as much as all of them. Raises `Unfit` where there
    is no such limit to be set.
    """
    cards = {device: limit for device in devices if device != "cpu" and (limit := limit_of(device, memory_gib))}
    if others := [device for device in cards if not device.startswith("cuda")]:
        raise Unfit(f"measure.memory_gib cannot limit {others[0]}; only cpu and cuda")
    try:
        for device, limit in cards.items():
            _limit_card(device, limit)
        with _limited_process(sum(device == "cpu" for device in devices) * (limit_of("cpu", memory_gib) or 0)):
            yield
    finally:
        for device in cards:
            _limit_card(device, None)


def _limit_card(device: str, limit: int | None) -> None:
    whole = torch.cuda.get_device_properties(device).total_memory
    share = 1.0 if limit is None else min(1.0, limit / whole)
    torch.cuda.set_per_process_memory_fraction(share, torch.device(device))


@contextmanager
def _limited_process(room: int) -> Iterator[None]:
    """Nothing is limited where there is no `room`."""
    if not room:
        yield
        return
    # Windows has no such module.
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (_data_limit(room, before[1]), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def _data_limit(room: int, hardest: int) -> int:
    """Bytes of data that leave `room` for all that is resident. Libraries are resident and no data."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError as error:
        raise Unfit(f"measure.memory_gib cannot limit cpu here, which has no /proc: {error}") from error
    now = {
        line.partition(":")[0]: int(line.split()[1]) * 1024 for line in lines if line.startswith(("VmData", "VmRSS"))
    }
    if now["VmRSS"] >= room:
        raise Unfit(f"measure.memory_gib leaves {room:,} bytes; the program alone takes {now['VmRSS']:,}")
    wanted = now["VmData"] + room - now["VmRSS"]
    return wanted if hardest < 0 else min(wanted, hardest)
