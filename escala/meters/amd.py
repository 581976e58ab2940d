"""AMD boards by their library AMD SMI: the energy accumulator, power, and what else explains them."""

from __future__ import annotations

import contextlib
import importlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from escala.meters.base import Bench, Channel, PowerMeter, Sample
from escala.meters.boards import Boards, Part, unmatched
from escala.meters.visible import plain
from escala.terms.errors import Unavailable

# AMD SMI's page on GPU violations: the firmware's metrics are sampled every 100 ms at the fastest.
UPDATE_S = 0.1

_POWER_KEYS = ("current_socket_power", "socket_power", "average_socket_power")
# The accumulator had another name before release 6.2.
_ENERGY_KEYS = ("energy_accumulator", "power")

# Each leaves boards out, or puts them in another order.
_ORDERING = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
# Older releases write the largest number of the field where newer ones write "N/A".
_UNKNOWN = 2**32 - 1


class Board(Struct, frozen=True):
    """One board: its UUIDs as AMD SMI and as HIP tell them, its place on the bus without the function."""

    handle: Any
    uuids: tuple[str, ...]
    slot: str
    where: str


def open_amd(bench: Bench) -> PowerMeter:
    """Every board of this machine once, but those that a meter reads already. Raises `Unavailable`."""
    smi = _start()
    try:
        boards = _boards(smi)
        names, without = _names(boards, bench)
        parts: list[Part[Board]] = unmatched(without)
        parts += [(_channel(smi, board, names.get(board.slot, board.where)), board) for board in boards]
    except BaseException:
        smi.amdsmi_shut_down()
        raise
    return Boards(parts, bench, partial(_sample, smi), partial(_stop, smi))


def _sample(smi: Any, channel: Channel, board: Board) -> Sample:
    """`amdsmi_get_energy_count`: accumulator x resolution in microjoules. `amdsmi_get_power_info`: watts.

    Source: AMD SMI Python API reference. Boards on which the accumulator stands still are known (MI100, ROCm/amdsmi
    issue 38); whoever takes the difference must look for it.
    """
    handle = board.handle
    try:
        joules = None if channel.joules is None else _joules(smi, handle)
        watts = None if channel.watts is None else _watts(smi, handle)
    except smi.AmdSmiException as error:
        return Sample(reason=_told(error))
    busy = _number(_optional(smi, "amdsmi_get_gpu_activity", handle), "gfx_activity")
    clock = _optional(smi, "amdsmi_get_clock_info", handle, smi.AmdSmiClkType.GFX)
    held_back = (_optional(smi, "amdsmi_get_gpu_metrics_info", handle) or {}).get("throttle_status")
    return Sample(
        joules,
        watts,
        None if busy is None else busy / 100,
        _number(clock, "clk"),
        _temperature(smi, handle),
        bool(held_back) if isinstance(held_back, int) and held_back < _UNKNOWN else None,
        _optional(smi, "amdsmi_get_gpu_memory_usage", handle, smi.AmdSmiMemoryType.VRAM),
        tuple(
            process["pid"]
            for process in _optional(smi, "amdsmi_get_gpu_process_list", handle) or ()
            if isinstance(process, dict) and process.get("pid")
        ),
    )


def _stop(smi: Any) -> None:
    with contextlib.suppress(smi.AmdSmiException):
        smi.amdsmi_shut_down()


def _start() -> Any:
    try:
        smi: Any = importlib.import_module("amdsmi")
    except ModuleNotFoundError:
        raise Unavailable("the package amdsmi is not installed: it comes with escala's extra amd") from None
    except Exception as error:
        # Its import looks for the library of the driver, and fails in several ways where there is none.
        raise Unavailable(f"no AMD driver on this machine ({error})") from None
    try:
        smi.amdsmi_init()
    except smi.AmdSmiException as error:
        raise Unavailable(f"no AMD driver on this machine ({_told(error)})") from None
    return smi


def _boards(smi: Any) -> tuple[Board, ...]:
    try:
        handles = smi.amdsmi_get_processor_handles()
    except smi.AmdSmiException as error:
        raise Unavailable(_told(error)) from None
    found: dict[str, Board] = {}
    for number, handle in enumerate(handles):
        own = _optional(smi, "amdsmi_get_gpu_device_uuid", handle)
        hip = (_optional(smi, "amdsmi_get_gpu_enumeration_info", handle) or {}).get("hip_uuid")
        bus = _optional(smi, "amdsmi_get_gpu_device_bdf", handle)
        uuids = tuple(uuid for uuid in (hip, own) if isinstance(uuid, str) and uuid)
        # Partitions of a board are functions of one place on the bus: its power is told once.
        slot = bus.rpartition(".")[0] if isinstance(bus, str) and bus else f"board {number}"
        found.setdefault(slot, Board(handle, uuids, slot, uuids[-1] if uuids else slot))
    if not found:
        raise Unavailable("the AMD driver lists no board")
    return tuple(found.values())


def _names(boards: Sequence[Board], bench: Bench) -> tuple[dict[str, str], dict[str, str]]:
    """The framework's name by a board's slot; and of devices that are none of `boards`, why."""
    # A framework built for CUDA numbers NVIDIA's boards only; for ROCm, its version of CUDA is None.
    devices = bench.host.of_kind("cuda") if bench.host.software.get("cuda", "None") == "None" else ()
    # Boards whose driver gives them none of their own all have the same.
    told = Counter(plain(uuid) for board in boards for uuid in set(board.uuids))
    by_uuid = {plain(uuid): board for board in boards for uuid in board.uuids if told[plain(uuid)] == 1}
    matched = {
        device.key: board
        for device in devices
        for form in _forms(device.uuid)
        if (board := by_uuid.get(form)) is not None
    }
    in_order = not any(bench.environment.get(variable) for variable in _ORDERING)
    if not matched and in_order and len(devices) == len(boards):
        matched = {device.key: board for device, board in zip(devices, boards, strict=True)}
    names, without = dict[str, str](), dict[str, str]()
    for device in devices:
        board = matched.get(device.key)
        if board is None:
            without[device.key] = "which board it is cannot be told: the AMD driver lists none with its UUID"
        elif board.slot in names:
            without[device.key] = f"it is the same board as {names[board.slot]}"
        else:
            names[board.slot] = device.key
    return names, without


def _forms(uuid: str) -> tuple[str, ...]:
    """A UUID as it stands, and read as the bytes of a text: HIP keeps the 16 digits of its own as text."""
    uuid = plain(uuid)
    try:
        return (uuid, plain(bytes.fromhex(uuid.replace("-", "")).decode("ascii")))
    except ValueError:
        return (uuid,)


def _channel(smi: Any, board: Board, where: str) -> Channel:
    counts, tells = _can(smi, lambda: _joules(smi, board.handle)), _can(smi, lambda: _watts(smi, board.handle))
    cap = _number(_optional(smi, "amdsmi_get_power_cap_info", board.handle), "power_cap")
    return Channel(
        where,
        "device",
        joules="counter" if counts else None,
        watts="sampled" if tells else None,
        update_s=UPDATE_S,
        limit_w=cap / 1e6 if cap else None,
        reason=None if counts or tells else "the board tells neither its energy nor its power",
    )


def _can(smi: Any, call: Callable[[], float | None]) -> bool:
    """Whether the board tells something: an accumulator or a power that is exactly 0 is one that it does not have."""
    try:
        return bool(call())
    except smi.AmdSmiException:
        return False


def _joules(smi: Any, handle: Any) -> float | None:
    told = smi.amdsmi_get_energy_count(handle)
    count = next((told[key] for key in _ENERGY_KEYS if isinstance(told.get(key), int)), None)
    resolution = _number(told, "counter_resolution")
    return None if count is None or resolution is None else count * resolution / 1e6


def _watts(smi: Any, handle: Any) -> float | None:
    told = smi.amdsmi_get_power_info(handle)
    known = (_number(told, key) for key in _POWER_KEYS)
    return next((watts for watts in known if watts), None)


def _temperature(smi: Any, handle: Any) -> float | None:
    """Of the hottest place, or else of the edge, degrees Celsius."""
    for sensor in (smi.AmdSmiTemperatureType.HOTSPOT, smi.AmdSmiTemperatureType.EDGE):
        degrees = _optional(smi, "amdsmi_get_temp_metric", handle, sensor, smi.AmdSmiTemperatureMetric.CURRENT)
        if isinstance(degrees, int | float):
            return degrees
    return None


def _optional(smi: Any, name: str, *arguments: Any) -> Any:
    """What explains a reading but is none: None where the board, or this release of the library, cannot tell it."""
    call = getattr(smi, name, None)
    if call is None:
        return None
    try:
        return call(*arguments)
    except smi.AmdSmiException:
        return None


def _number(told: Mapping[str, Any] | None, key: str) -> float | None:
    """A number of an answer; the library writes "N/A" for what a board does not know."""
    value = (told or {}).get(key)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _told(error: BaseException) -> str:
    return f"AMD SMI: {' '.join(str(error).split())}"
