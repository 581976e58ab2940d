"""The table of strategies. Free of torch until one is built."""

from __future__ import annotations

from escala.strategies.base import Strategy
from escala.strategies.data_parallel import DataParallel
from escala.strategies.ddp import Ddp
from escala.strategies.fsdp import Fsdp
from escala.strategies.hsdp import Hsdp
from escala.strategies.layers import Layers
from escala.strategies.pipeline import Pipeline
from escala.strategies.single import Single
from escala.strategies.tensor import Tensor
from escala.strategies.zero1 import Zero1
from escala.terms.trial import StrategyUse
from escala.terms.words import not_in_table

STRATEGIES: dict[str, type[Strategy]] = {
    "single": Single,
    "data-parallel": DataParallel,
    "ddp": Ddp,
    "zero1": Zero1,
    "fsdp": Fsdp,
    "hsdp": Hsdp,
    "layers": Layers,
    "pipeline": Pipeline,
    "tensor": Tensor,
}


def strategy(use: StrategyUse) -> Strategy:
    """The strategy that a trial uses. Raises `CFG-VALUE` for a name that is not in the table."""
    kind = STRATEGIES.get(use.name)
    if kind is None:
        raise not_in_table("strategy.name", "strategy", use.name, STRATEGIES)
    return kind(use.ways, use.device, use.simulate, use.options)
