"""NVIDIA boards by their library NVML: the energy counter, power, and what else explains them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from escala.meters.base import Bench, Channel, PowerMeter, Sample
from escala.meters.boards import Boards, Part, unmatched
from escala.meters.nvidia import Board, boards_of, names_of, start, stop, told
from escala.meters.visible import plain

# NVML states no period. On an H100 the counter was seen to move about ten times a second, and the power sensors of
# 70 boards every 20 to 100 ms (Yang, Adamek, Armour 2024, arXiv:2312.02741).
UPDATE_S = 0.1

# nvml.h, nvmlClocksEventReasons: power cap, hardware slowdown, heat (by software and hardware), power brake. Idle
# boards, clocks that somebody set and boards that wait for each other's boost are not held back.
_HELD_BACK = 0x04 | 0x08 | 0x20 | 0x40 | 0x80


def open_nvml(bench: Bench) -> PowerMeter:
    """Every board of this machine once, whatever CUDA_VISIBLE_DEVICES says, but those that a meter reads already.

    Raises `Unavailable` without package, driver or board, and EscalaError ENV-VISIBLE.
    """
    nvml = start()
    try:
        boards = boards_of(nvml)
        names = names_of(boards, bench)
        parts: list[Part[Board]] = unmatched(names.without)
        for board in boards:
            where = names.of.get(plain(board.uuid)) or board.uuid or f"board {board.index}"
            parts.append((_channel(nvml, board, where), board))
    except BaseException:
        nvml.nvmlShutdown()
        raise
    return Boards(parts, bench, partial(_sample, nvml), partial(stop, nvml))


def _sample(nvml: Any, channel: Channel, board: Board) -> Sample:
    """Joules by counter where the board has one; watts at one moment where it tells them, else over the last second.

    `nvmlDeviceGetTotalEnergyConsumption`: mJ since the driver was loaded, Volta and later. Field POWER_INSTANT: mW.
    `nvmlDeviceGetPowerUsage`: mW, from Ampere on (but for GA100) the mean of one second. Source: NVML API reference,
    device queries.
    """
    handle = board.handle
    try:
        joules = None if channel.joules is None else nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000
        watts = None if channel.watts is None else _watts(nvml, handle)
    except nvml.NVMLError as error:
        return Sample(reason=told(error))
    busy = _optional(nvml, nvml.nvmlDeviceGetUtilizationRates, handle)
    memory = _optional(nvml, nvml.nvmlDeviceGetMemoryInfo, handle)
    return Sample(
        joules,
        watts,
        None if busy is None else busy.gpu / 100,
        _optional(nvml, nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
        _optional(nvml, nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
        _throttled(nvml, handle),
        None if memory is None else memory.used,
        tuple(
            process.pid
            for process in _optional(nvml, nvml.nvmlDeviceGetComputeRunningProcesses, handle) or ()
            if process.pid
        ),
    )


def utilisation(nvml: Any, board: Board) -> float | None:
    """Share of the time in which the board worked lately; None where it does not tell."""
    busy = _optional(nvml, nvml.nvmlDeviceGetUtilizationRates, board.handle)
    return None if busy is None else busy.gpu / 100


def _channel(nvml: Any, board: Board, where: str) -> Channel:
    if board.reason is not None:
        return Channel(where, "device", reason=board.reason)
    try:
        counts = _can(nvml, nvml.nvmlDeviceGetTotalEnergyConsumption, board.handle)
        tells = _can(nvml, lambda handle: _watts(nvml, handle), board.handle)
    except nvml.NVMLError as error:
        return Channel(where, "device", reason=told(error))
    limit = _optional(nvml, nvml.nvmlDeviceGetEnforcedPowerLimit, board.handle)
    return Channel(
        where,
        "device",
        joules="counter" if counts else None,
        watts="sampled" if tells else None,
        update_s=UPDATE_S,
        limit_w=limit / 1000 if limit else None,
        reason=None if counts or tells else "the board tells neither its energy nor its power",
    )


def _can(nvml: Any, call: Callable[[Any], Any], handle: Any) -> bool:
    """Whether the board answers, if not that it never will. Raises its other errors."""
    try:
        call(handle)
    except (nvml.NVMLError_NotSupported, nvml.NVMLError_FunctionNotFound):
        return False
    return True


def _optional(nvml: Any, call: Callable[..., Any], *arguments: Any) -> Any:
    """What explains a reading but is none: None where it cannot be had."""
    try:
        return call(*arguments)
    except (nvml.NVMLError, nvml.NVMLLibraryMismatchError):
        return None


def _watts(nvml: Any, handle: Any) -> float:
    """Watts now. Raises NVMLError."""
    fields = _optional(nvml, nvml.nvmlDeviceGetFieldValues, handle, [nvml.NVML_FI_DEV_POWER_INSTANT])
    if fields and fields[0].nvmlReturn == nvml.NVML_SUCCESS and fields[0].value.uiVal:
        return float(fields[0].value.uiVal) / 1000
    # Older boards and drivers do not know that field.
    return float(nvml.nvmlDeviceGetPowerUsage(handle)) / 1000


def _throttled(nvml: Any, handle: Any) -> bool | None:
    # The function was renamed; drivers know the one or the other name.
    reasons = _optional(nvml, nvml.nvmlDeviceGetCurrentClocksEventReasons, handle)
    if reasons is None:
        reasons = _optional(nvml, nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
    return None if reasons is None else bool(reasons & _HELD_BACK)
