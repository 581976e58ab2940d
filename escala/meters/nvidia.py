"""NVIDIA boards as their library NVML lists them, and the framework's names for them."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from escala.meters.base import Bench
from escala.meters.visible import VARIABLE, plain, visible
from escala.terms.errors import Unavailable
from escala.terms.host import Device

NOT_INSTALLED = "the package nvidia-ml-py is not installed"
SLICE = "the energy of a MIG slice cannot be told from that of its board"

_NOT_STARTED = {
    "NVMLError_LibraryNotFound": "no NVIDIA driver on this machine",
    "NVMLError_DriverNotLoaded": "the NVIDIA driver is not loaded",
    "NVMLError_NoPermission": "permission denied by the NVIDIA driver",
    "NVMLError_LibRmVersionMismatch": "the NVIDIA driver was replaced while it ran: its parts are of two versions",
}


class Board(Struct, frozen=True):
    """One board. `sliced`: it is divided into MIG instances. `reason`: why it does not answer at all."""

    index: int
    handle: Any = None
    uuid: str = ""
    name: str = ""
    sliced: bool = False
    reason: str | None = None


class Names(Struct, frozen=True):
    """The framework's names: `of` a board by its plain UUID, and `without`, devices that are no whole board: why."""

    of: Mapping[str, str] = field(default_factory=dict)
    without: Mapping[str, str] = field(default_factory=dict)


def start() -> Any:
    """The module `pynvml`, its library started; the caller shuts it down. Raises `Unavailable`."""
    try:
        nvml: Any = importlib.import_module("pynvml")
    except ImportError:
        raise Unavailable(NOT_INSTALLED) from None
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        raise Unavailable(_NOT_STARTED.get(type(error).__name__, told(error))) from None
    return nvml


def stop(nvml: Any) -> None:
    """Give the library back."""
    # The driver may be gone by now; there is nothing left to give back then.
    with contextlib.suppress(nvml.NVMLError):
        nvml.nvmlShutdown()


def told(error: BaseException) -> str:
    """An error of the library as a reason: `NVML: GPU is lost`."""
    return f"NVML: {error}"


def boards_of(nvml: Any) -> tuple[Board, ...]:
    """Every physical board once, in NVML's order: that of the PCI bus. Raises `Unavailable` where there is none."""
    try:
        count = nvml.nvmlDeviceGetCount()
    except nvml.NVMLError as error:
        raise Unavailable(told(error)) from None
    found: dict[str, Board] = {}
    for index in range(count):
        board = _board(nvml, index)
        found.setdefault(plain(board.uuid) or f"board {index}", board)
    if not found:
        raise Unavailable("the NVIDIA driver lists no board")
    return tuple(found.values())


def names_of(boards: Sequence[Board], bench: Bench) -> Names:
    """Which of `boards` is which of the host's devices, by UUID.

    Where the host knows no UUIDs, CUDA_VISIBLE_DEVICES tells. Raises EscalaError ENV-VISIBLE for an entry of no known
    form: the framework then sees other boards than the person meant.
    """
    known = {plain(board.uuid): board for board in boards if board.uuid}
    # A framework built for ROCm calls AMD's boards cuda, too, and its version of CUDA is None.
    devices = () if bench.host.software.get("cuda") == "None" else bench.host.of_kind("cuda")
    numbered = _numbered(boards, bench, devices)
    names, without = dict[str, str](), dict[str, str]()
    for place, device in enumerate(devices):
        uuid = plain(device.uuid) or (plain(numbered[place]) if numbered else "")
        board = known.get(uuid)
        if uuid.startswith("mig-") or (board is not None and board.sliced):
            without[device.key] = SLICE
        elif board is None:
            without[device.key] = _unmatched(device)
        elif uuid in names:
            without[device.key] = f"it is the same board as {names[uuid]}"
        else:
            names[uuid] = device.key
    return Names(names, without)


def _board(nvml: Any, index: int) -> Board:
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        uuid = nvml.nvmlDeviceGetUUID(handle)
        name = nvml.nvmlDeviceGetName(handle)
    except nvml.NVMLError as error:
        return Board(index, reason=told(error))
    try:
        sliced = bool(nvml.nvmlDeviceGetMigMode(handle)[0])
    except nvml.NVMLError:
        # Only boards that can be sliced know the question.
        sliced = False
    return Board(index, handle, uuid, name, sliced)


def _numbered(boards: Sequence[Board], bench: Bench, devices: Sequence[Device]) -> tuple[str, ...]:
    """UUIDs by the framework's numbers; empty where the variable cannot tell them."""
    value = bench.environment.get(VARIABLE)
    numbered = visible(value, [board.uuid for board in boards])
    # By default CUDA counts from the fastest board, NVML along the bus: equal boards only are in one order.
    in_order = (
        bench.environment.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID" or len({board.name for board in boards}) == 1
    )
    by_uuid = value is not None and value.strip().startswith(("GPU-", "MIG-"))
    return numbered if len(numbered) == len(devices) and (in_order or by_uuid) else ()


def _unmatched(device: Device) -> str:
    if device.uuid:
        return "the NVIDIA driver lists no board with its UUID"
    return f"which board it is cannot be told: it has no UUID, and {VARIABLE} does not say"
