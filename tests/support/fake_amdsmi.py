"""A module `amdsmi` over boards that are written down beforehand."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


class AmdSmiException(Exception):
    """What the library raises."""


class FakeBoard:
    """One board; a test changes its attributes, or puts an exception in place of what it tells."""

    def __init__(self, number: int = 0) -> None:
        self.uuid: Any = f"{number}{number}ff74b5-0000-1000-80cc-79ec7ca2b573"
        self.enumeration: Any = {"hip_id": number, "hip_uuid": f"GPU-{number}{number}cc79ec7ca2b573"}
        self.bus: Any = f"0000:{number}1:00.0"
        self.energy: Any = {"energy_accumulator": 2_000_000, "counter_resolution": 15.3, "timestamp": 1}
        self.power: Any = {"current_socket_power": 410, "average_socket_power": "N/A", "power_limit": 750_000_000}
        self.cap: Any = {"power_cap": 750_000_000}
        self.activity: Any = {"gfx_activity": 25, "umc_activity": 1, "mm_activity": "N/A"}
        self.clock: Any = {"clk": 2100, "min_clk": 132, "max_clk": 2100}
        self.metrics: Any = {"throttle_status": "N/A"}
        self.memory: Any = 3 << 30
        self.processes: Any = [{"name": "python", "pid": 71}]
        self.degrees: Any = {"hotspot": 55}


def install(monkeypatch: pytest.MonkeyPatch, boards: Sequence[FakeBoard], starts: Exception | None = None) -> Any:
    """Have `import amdsmi` find the fake; its `started` counts what was started and not yet shut down."""
    module: Any = ModuleType("amdsmi")
    module.AmdSmiException = AmdSmiException
    module.AmdSmiClkType = SimpleNamespace(GFX="gfx")
    module.AmdSmiMemoryType = SimpleNamespace(VRAM="vram")
    module.AmdSmiTemperatureType = SimpleNamespace(HOTSPOT="hotspot", EDGE="edge")
    module.AmdSmiTemperatureMetric = SimpleNamespace(CURRENT="current")
    module.started = 0

    def told(value: Any) -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    def start() -> None:
        told(starts)
        module.started += 1

    def shut_down() -> None:
        module.started -= 1

    def temperature(board: FakeBoard, sensor: str, metric: str) -> Any:
        return told(told(board.degrees).get(sensor, AmdSmiException("not supported")))

    module.amdsmi_init, module.amdsmi_shut_down = start, shut_down
    module.amdsmi_get_processor_handles = lambda: list(boards)
    module.amdsmi_get_temp_metric = temperature
    for name, attribute in (
        ("gpu_device_uuid", "uuid"),
        ("gpu_enumeration_info", "enumeration"),
        ("gpu_device_bdf", "bus"),
        ("energy_count", "energy"),
        ("power_info", "power"),
        ("power_cap_info", "cap"),
        ("gpu_activity", "activity"),
        ("clock_info", "clock"),
        ("gpu_metrics_info", "metrics"),
        ("gpu_memory_usage", "memory"),
        ("gpu_process_list", "processes"),
    ):
        setattr(module, f"amdsmi_get_{name}", lambda board, *_, key=attribute: told(getattr(board, key)))
    monkeypatch.setitem(sys.modules, "amdsmi", module)
    return module
