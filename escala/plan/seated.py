"""Who sits where under a given execution, or the reason why it cannot be had here."""

from __future__ import annotations

from escala.plan.choices import choice_unfit
from escala.plan.formats import format_unfit
from escala.plan.peers import peer_seats, peer_unfit
from escala.plan.preflight import Facts
from escala.strategies import strategy
from escala.strategies.balance import check_stages
from escala.strategies.seating import with_cores
from escala.strategies.splits import uneven
from escala.strategies.tensor import Tensor
from escala.terms.errors import Unfit
from escala.terms.experiment import ExecutionSpec, TrainSpec
from escala.terms.host import Host
from escala.terms.trial import Seat, StrategyUse


def seated(
    use: StrategyUse, peer: str | None, train: TrainSpec, execution: ExecutionSpec, facts: Facts, host: Host
) -> tuple[tuple[Seat, ...], str | None]:
    """The seats, none where the strategy does not fit, and the first reason why the trial cannot be run.

    Raises `CFG-VALUE` for an unknown strategy.
    """
    seats, unfit = _seats(use, peer, train.batch, execution, host)
    if peer is not None:
        unfit = unfit or peer_unfit(peer, use, train, execution, facts)
    else:
        unfit = unfit or _cut_unfit(use, facts)
    unfit = unfit or format_unfit(execution.precision, use.device, host)
    unfit = unfit or choice_unfit(execution, use.device, seats, facts, host)
    return seats, unfit or _split_unfit(use, facts)


def _split_unfit(use: StrategyUse, facts: Facts) -> str | None:
    """Why this network cannot be split as the strategy asks; None: it can, or is not to be."""
    chosen = strategy(use)
    if not isinstance(chosen, Tensor):
        return None
    return facts.splits_unfit or uneven(facts.splits, chosen.parts)


def _cut_unfit(use: StrategyUse, facts: Facts) -> str | None:
    """Why the network cannot be cut into as many stages as the strategy makes of it; None: it can."""
    stages = strategy(use).stages
    if stages == 1:
        return None
    try:
        check_stages(stages, stages if facts.blocks is None else facts.blocks)
    except Unfit as reason:
        return facts.uncut or str(reason)
    return facts.uncut


def _seats(
    use: StrategyUse, peer: str | None, batch: int, execution: ExecutionSpec, host: Host
) -> tuple[tuple[Seat, ...], str | None]:
    try:
        if peer is not None:
            return peer_seats(use, host, batch), None
        return with_cores(strategy(use).seats(host, batch, execution), host, use.device, execution), None
    except Unfit as reason:
        return (), str(reason)
