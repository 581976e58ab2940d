"""The machine as plain data."""

from __future__ import annotations

from msgspec import Struct, field


class Device(Struct, frozen=True):
    """One accelerator. `index` is the framework's number, `uuid` the card's own."""

    kind: str
    index: int
    name: str
    memory_bytes: int
    uuid: str = ""
    capability: str = ""
    """Of a CUDA device: its compute capability, such as `9.0`."""

    @property
    def key(self) -> str:
        """The framework's name for it, for example `cuda:0`."""
        return f"{self.kind}:{self.index}"


class Host(Struct, frozen=True):
    """What a campaign ran on.

    `cores` is what this process may use (affinity and cgroup quota), not what the machine has.
    `software` holds versions by name. `environment` holds an allow-list of variables, no others.
    """

    cpu: str
    cores: int
    memory_bytes: int
    system: str
    devices: tuple[Device, ...] = ()
    software: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    name: str = ""
    nodes: int = 1
    """Machines like this one that take part."""
    seats_per_node: int | None = None
    """Seats that the launcher put on each node; None: as many as there are devices."""

    def of_kind(self, kind: str) -> tuple[Device, ...]:
        """The accelerators of one kind, in the framework's order."""
        return tuple(device for device in self.devices if device.kind == kind)

    @property
    def best(self) -> str:
        """Kind of the fastest device: an accelerator if there is one, else `cpu`."""
        return self.devices[0].kind if self.devices else "cpu"

    @property
    def likeness(self) -> tuple[str, ...]:
        """What must be equal before two records may be averaged."""
        cards = [f"{device.kind} {device.name}" for device in self.devices]
        return (self.cpu, f"{self.cores} cores", *cards, f"torch {self.software.get('torch', '?')}")
