"""Seats of trials that somebody else's loop trains, and whether it can."""

from __future__ import annotations

from escala.peers.fit import unfit
from escala.plan.preflight import Facts
from escala.strategies.seating import places, threads_per_seat
from escala.terms.errors import Unfit
from escala.terms.experiment import ExecutionSpec, TrainSpec
from escala.terms.host import Host
from escala.terms.trial import Seat, StrategyUse


def peer_seats(use: StrategyUse, host: Host, batch: int) -> tuple[Seat, ...]:
    """One seat with all devices and all rows. Raises Unfit where the host has fewer."""
    if use.simulate:
        raise Unfit("a peer is one process, so nothing of it can be simulated")
    spots = places(host, use.device, use.ways, simulate=False)
    if any(node > 0 for node, _ in spots):
        raise Unfit("a peer cannot leave its one process, so not its one node")
    devices = tuple(device for _, device in spots)
    return (Seat(0, 0, devices, (0, batch), threads_per_seat(host, 1, use.device)),)


def peer_unfit(peer: str, use: StrategyUse, train: TrainSpec, execution: ExecutionSpec, facts: Facts) -> str | None:
    """Why this peer cannot train so, or not this network; None: it can."""
    rows = facts.use.rows["train"]
    return unfit(peer, use.ways, use.device, train, execution, rows) or facts.peers_unfit.get(peer)
