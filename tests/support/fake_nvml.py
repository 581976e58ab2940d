"""A module `pynvml` over boards that are written down beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


class NVMLError(Exception):
    """What the library raises; its own kinds are told apart by class."""


class NVMLError_NotSupported(NVMLError):  # noqa: N801 - the library's own name
    pass


class NVMLError_FunctionNotFound(NVMLError):  # noqa: N801 - the library's own name
    pass


class NVMLError_GpuIsLost(NVMLError):  # noqa: N801 - the library's own name
    pass


class NVMLError_LibraryNotFound(NVMLError):  # noqa: N801 - the library's own name
    pass


class NVMLLibraryMismatchError(Exception):
    pass


class FakeBoard:
    """One board; a test changes its attributes, or puts an exception in place of what it tells."""

    def __init__(self, uuid: str, name: str = "NVIDIA Test Board") -> None:
        self.uuid: Any = uuid
        self.name = name
        self.mig: Any = NVMLError_NotSupported("Not Supported")
        self.millijoules: Any = 5_000
        self.milliwatts: Any = 200_000
        self.instant: Any = NVMLError_NotSupported("Not Supported")
        self.limit: Any = 700_000
        self.busy: Any = 50
        self.memory: Any = 1 << 30
        self.clock: Any = 1980
        self.degrees: Any = 60
        self.reasons: Any = 0
        self.processes: Any = [SimpleNamespace(pid=71)]


def _told(value: Any) -> Any:
    if isinstance(value, Exception):
        raise value
    return value


def fake_nvml(boards: Sequence[FakeBoard], starts: Exception | None = None) -> ModuleType:
    """The module; `started` counts what was started and not yet shut down."""
    module: Any = ModuleType("pynvml")
    for kind in (
        NVMLError,
        NVMLError_NotSupported,
        NVMLError_FunctionNotFound,
        NVMLError_GpuIsLost,
        NVMLError_LibraryNotFound,
        NVMLLibraryMismatchError,
    ):
        setattr(module, kind.__name__, kind)
    module.NVML_SUCCESS, module.NVML_CLOCK_SM, module.NVML_TEMPERATURE_GPU = 0, 1, 0
    module.NVML_FI_DEV_POWER_INSTANT = 186
    module.started = 0

    def start() -> None:
        _told(starts)
        module.started += 1

    def shut_down() -> None:
        module.started -= 1

    def teller(attribute: str, wrap: Callable[[Any], Any] = lambda value: value) -> Callable[..., Any]:
        return lambda board, *_: wrap(_told(getattr(board, attribute)))

    module.nvmlInit, module.nvmlShutdown = start, shut_down
    module.nvmlDeviceGetCount = lambda: len(boards)
    module.nvmlDeviceGetHandleByIndex = lambda index: _told(boards[index])
    module.nvmlDeviceGetUUID = teller("uuid")
    module.nvmlDeviceGetName = teller("name")
    module.nvmlDeviceGetMigMode = teller("mig")
    module.nvmlDeviceGetTotalEnergyConsumption = teller("millijoules")
    module.nvmlDeviceGetPowerUsage = teller("milliwatts")
    module.nvmlDeviceGetFieldValues = teller(
        "instant", lambda value: [SimpleNamespace(nvmlReturn=0, value=SimpleNamespace(uiVal=value))]
    )
    module.nvmlDeviceGetEnforcedPowerLimit = teller("limit")
    module.nvmlDeviceGetUtilizationRates = teller("busy", lambda value: SimpleNamespace(gpu=value))
    module.nvmlDeviceGetMemoryInfo = teller("memory", lambda value: SimpleNamespace(used=value))
    module.nvmlDeviceGetClockInfo = teller("clock")
    module.nvmlDeviceGetTemperature = teller("degrees")
    module.nvmlDeviceGetCurrentClocksEventReasons = teller("reasons")
    module.nvmlDeviceGetCurrentClocksThrottleReasons = teller("reasons")
    module.nvmlDeviceGetComputeRunningProcesses = teller("processes")
    return module


def install(monkeypatch: pytest.MonkeyPatch, boards: Sequence[Any], starts: Exception | None = None) -> Any:
    """Have `import pynvml` find the fake."""
    module = fake_nvml(boards, starts)
    monkeypatch.setitem(__import__("sys").modules, "pynvml", module)
    return module
