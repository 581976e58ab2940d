"""Tensor parallelism: seats that see the same rows hold parts of the same layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import msgspec

from escala.execution.exchange import refuse_exchange
from escala.strategies.base import PLAIN, Learner, Strategy
from escala.strategies.seating import divide, places, refuse_capture, threads_per_seat
from escala.strategies.shardable import check_narrow
from escala.terms.errors import Unfit
from escala.terms.experiment import ExecutionSpec, StrategyOptions, TrainSpec
from escala.terms.host import Host
from escala.terms.trial import Seat

if TYPE_CHECKING:
    from torch import nn

    from escala.workloads.base import Workload

_KINDS = ("cpu", "cuda", "xpu")
_OF_SHARDS = ("reshard", "narrow", "prefetch", "group")


@dataclass(frozen=True)
class Tensor(Strategy):
    """A mesh of `replicas` (1 where it is left out) times parts; neighbours in rank hold the parts of one replica.

    Layers outside the plan are whole on every seat, which computes them alike. With `shard` a replica's weights,
    gradients and state are cut once more, over the replicas.
    """

    grouped: ClassVar[bool] = True
    takes: ClassVar[tuple[str, ...]] = ("replicas", "shard", *_OF_SHARDS)

    @property
    def shares(self) -> int:
        return self.options.replicas or 1

    @property
    def parts(self) -> int:
        """Into how many parts each layer of the plan is cut."""
        return self.ways // self.shares

    def seats(self, host: Host, batch: int, execution: ExecutionSpec = PLAIN) -> tuple[Seat, ...]:
        self._check(execution)
        spots = places(host, self.device, self.ways, simulate=self.simulate)
        if self.device != "cpu" and len(set(spots)) < len(spots):
            raise Unfit(f"seats that share a {self.device} device meet through gloo, which gathers nothing there")
        on_node = max(sum(node == other for node, _ in spots) for other, _ in spots)
        threads = threads_per_seat(host, on_node, self.device)
        rows = divide(batch, self.shares, execution.unit)
        return tuple(
            Seat(
                rank,
                node,
                (device,),
                rows[rank // self.parts],
                threads,
                replica=rank // self.parts,
                tells=rank % self.parts == 0,
            )
            for rank, (node, device) in enumerate(spots)
        )

    def build(
        self, workload: Workload, model: nn.Module, seat: Seat, train: TrainSpec, execution: ExecutionSpec
    ) -> Learner:
        """Raises `Unfit` for a network without a plan, and for layers that cannot be cut into equal parts."""
        from escala.strategies.tensored import tensored

        # Seats that compute the same must drop the same, and the rows of the one replica are all rows.
        agreed = msgspec.structs.replace(
            execution, random="row", batchnorm="local" if execution.batchnorm == "sync" else execution.batchnorm
        )
        return tensored(workload, model, seat, train, agreed, (self.shares, self.parts), self.options)

    def _check(self, execution: ExecutionSpec) -> None:
        refuse_capture(execution, "tensor")
        replicas = self.shares
        if self.ways % replicas or self.parts < 2:
            raise Unfit(
                f"tensor splits layers over 2 seats or more, and {self.ways} seats are not {replicas} x so many; "
                f"nearest: ways = {max(2, round(self.ways / replicas)) * replicas}"
            )
        self._check_shards(execution)
        if self.device not in _KINDS:
            raise Unfit(f"parts of layers meet through gloo, NCCL and XCCL; {self.device} has none of them")
        refuse_exchange(execution, "tensor exchanges activations, not gradients by DDP")
        if execution.transport == "shm":
            raise Unfit("transport = shm adds up whole gradients, and here seats hold parts of them")
        if execution.transport == "gloo" and self.device != "cpu":
            raise Unfit(f"transport = gloo is for what lies in the host's memory; {self.device} has its own way")
        if execution.precision in ("fp16", "fp8"):
            kept = "one scale for all losses" if execution.precision == "fp16" else "scales beside whole weights"
            raise Unfit(f"{execution.precision} keeps {kept}, and here each seat holds a part of them; use bf16")
        if execution.random == "seat":
            raise Unfit("random = seat has each seat draw for itself, but seats of tensor compute the same; use row")
        if execution.dropout_kernel == "packed":
            raise Unfit("seats of tensor drop by row, which has numbers of its own and not those of a dropout_kernel")
        if execution.batchnorm == "sync" and replicas > 1:
            raise Unfit("batchnorm = sync goes over all seats, of which some see the same rows here; use ghost:N")

    def _check_shards(self, execution: ExecutionSpec) -> None:
        options, usual = self.options, StrategyOptions()
        given = [name for name in _OF_SHARDS if getattr(options, name) != getattr(usual, name)]
        if given and not options.shard:
            raise Unfit(f"{given[0]} says how shards are gathered, and there are none; set shard = true")
        if options.shard and self.shares < 2:
            raise Unfit("shard = true cuts weights over the replicas, and there is one; set replicas to 2 or more")
        check_narrow(options, execution)
