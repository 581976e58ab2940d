"""Which layers of a network tensor parallelism splits, and into how many parts they can be split.

A `column` layer gives each seat some of its outputs, a `row` layer takes some of its inputs from each seat and adds
up what comes of them (Shoeybi et al., arXiv:1909.08053). The plan stands in the order in which layers pass: a row
layer takes in what the column layers before it gave. No torch: plans are made without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from escala.terms.errors import Unfit

if TYPE_CHECKING:
    from torch import nn

    from escala.workloads.base import Workload

_SHOWN = 3


class Split(Struct, frozen=True):
    """One layer of the plan: its `size` outputs (column) or inputs (row), of which `unit` stay together."""

    name: str
    way: str
    size: int
    unit: int = 1

    @property
    def parts(self) -> int:
        """Into how many equal parts it could be cut at most."""
        return self.size // self.unit


def splits(workload: Workload, model: nn.Module) -> tuple[Split, ...]:
    """The plan of a network, in its order. Raises `Unfit` where there is none, or none that can be followed."""
    from torch import nn

    plan, units = _told(workload, model, "tensor_plan"), _told(workload, model, "tensor_units")
    named = dict(model.named_modules())
    if not plan:
        raise Unfit(_missing(name for name, layer in named.items() if type(layer) is nn.Linear))
    held = [id(weight) for _, weight in model.named_parameters(remove_duplicate=False)]
    found = list[Split]()
    for name, way in plan.items():
        layer = named.get(name)
        if layer is None:
            raise Unfit(f"tensor_plan() names {name!r}, which is no layer of this network")
        if type(layer) is not nn.Linear:
            raise Unfit(f"tensor_plan() names {name!r}, a {type(layer).__name__}; only nn.Linear can be split")
        if way not in ("column", "row"):
            raise Unfit(f"tensor_plan() splits {name!r} by {way!r}; there is column, by outputs, and row, by inputs")
        if any(held.count(id(weight)) > 1 for weight in layer.parameters()):
            raise Unfit(f"tensor_plan() splits {name!r}, whose weights another layer has in common with it")
        size = layer.out_features if way == "column" else layer.in_features
        unit = units.get(name, 1)
        if unit < 1 or size % unit:
            raise Unfit(f"tensor_units() keeps {unit} of the {size} units of {name!r} together, which do not divide")
        found.append(Split(name, way, size, unit))
    return tuple(found)


def uneven(found: Iterable[Split], parts: int) -> str | None:
    """Why layers cannot be cut into so many parts, all of one size; None: they can."""
    bad = [split for split in found if split.parts % parts]
    if not bad:
        return None
    told = [
        f"{split.name} has {split.size} {'outputs' if split.way == 'column' else 'inputs'}"
        + (f" in {split.parts} x {split.unit}" if split.unit > 1 else "")
        for split in bad[:_SHOWN]
    ]
    more = f" and {len(bad) - _SHOWN} layers more" if len(bad) > _SHOWN else ""
    return f"tensor cuts each layer of its plan into {parts} equal parts, but {', '.join(told)}{more}"


def _told(workload: Workload, model: nn.Module, name: str) -> Mapping[str, Any]:
    """What the workload says, or else a method of that name of the network itself, for a person's own network."""
    found: Mapping[str, Any] = getattr(workload, name)()
    own = getattr(model, name, None)
    return found or (own() if callable(own) else {})


def _missing(linear: Iterable[str]) -> str:
    names = [name for name in linear if name]
    if len(names) < 2:
        return "tensor splits pairs of nn.Linear, and this network has no two of them; use ddp or fsdp"
    # Names of the network itself, as an example of the form; which layers follow each other only its author knows.
    plan = f'{{"{names[0]}": "column", "{names[1]}": "row"}}'
    return (
        "tensor needs to know which layers to split; add a method to the network or its workload, such as "
        f"def tensor_plan(self): return {plan}, where between a column layer and the row layer that takes its "
        "outputs in nothing may mix these"
    )
