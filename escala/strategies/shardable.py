"""Where the seats of a sharded network sit, and what they cannot do. No torch: plans are made without it."""

from __future__ import annotations

from escala.execution.exchange import refuse_exchange
from escala.strategies.base import Strategy
from escala.strategies.seating import data_parallel_seats, refuse_capture
from escala.terms.errors import Unfit
from escala.terms.experiment import ExecutionSpec, StrategyOptions
from escala.terms.host import Host
from escala.terms.trial import Seat

SHARDED = ("reshard", "offload", "narrow", "prefetch", "group")
"""Options of every strategy that shards weights."""


def sharded_seats(strategy: Strategy, host: Host, batch: int, execution: ExecutionSpec) -> tuple[Seat, ...]:
    """Seats with one device and an equal share of rows each. Raises `Unfit` for what `fully_shard` cannot do."""
    kind, options = strategy.device, strategy.options
    seats = data_parallel_seats(host, kind, strategy.ways, batch, simulate=strategy.simulate, unit=execution.unit)
    if kind not in ("cpu", "cuda", "xpu"):
        raise Unfit(f"sharded weights are exchanged by gloo, NCCL and XCCL; {kind} has none of them")
    if kind != "cpu" and len({(seat.node, seat.devices) for seat in seats}) < len(seats):
        raise Unfit(f"seats that share a {kind} device meet through gloo, which cannot gather parts of weights there")
    if execution.transport == "shm":
        raise Unfit("transport = shm adds up whole gradients, and here each seat keeps a part of them")
    if execution.transport == "gloo" and kind != "cpu":
        raise Unfit(f"transport = gloo is for gradients in the host's memory; {kind} has its own way")
    refuse_capture(execution, "fully_shard")
    refuse_exchange(execution, "sharded gradients meet without DDP")
    if execution.precision == "fp8":
        raise Unfit("fp8 keeps scales beside weights that are whole, and here each seat holds a part of them")
    check_narrow(options, execution)
    if options.offload and kind == "cpu":
        raise Unfit("offload = cpu moves weights from a device to host memory; on cpu they lie there anyway")
    if options.offload and execution.precision == "fp16":
        raise Unfit("offload = cpu takes steps in host memory, where gradients of fp16 are not unscaled; use bf16")
    return seats


def check_narrow(options: StrategyOptions, execution: ExecutionSpec) -> None:
    """Raises `Unfit` where weights are to be gathered in another format than the network computes in."""
    if options.narrow and execution.precision != "bf16":
        raise Unfit(f"narrow gathers weights in the 16 bits of precision = bf16; this is {execution.precision}")
