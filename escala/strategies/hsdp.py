"""Hybrid sharding: the network is sharded within a replica, and gradients are averaged across replicas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from escala.strategies.base import PLAIN, Learner, Strategy
from escala.strategies.shardable import SHARDED, sharded_seats
from escala.terms.errors import Unfit
from escala.terms.experiment import ExecutionSpec, TrainSpec
from escala.terms.host import Host
from escala.terms.trial import Seat

if TYPE_CHECKING:
    from torch import nn

    from escala.workloads.base import Workload

REPLICAS = 2


@dataclass(frozen=True)
class Hsdp(Strategy):
    """A mesh of `replicas` (2 where it is left out) times shards; neighbours in rank hold parts of one replica."""

    grouped: ClassVar[bool] = True
    takes: ClassVar[tuple[str, ...]] = ("replicas", *SHARDED)

    @property
    def shares(self) -> int:
        return self.ways

    @property
    def _replicas(self) -> int:
        return self.options.replicas or REPLICAS

    def seats(self, host: Host, batch: int, execution: ExecutionSpec = PLAIN) -> tuple[Seat, ...]:
        replicas = self._replicas
        if replicas == 1:
            raise Unfit("hsdp with one replica is fsdp; use that, or replicas of 2 or more")
        if self.ways % replicas or self.ways == replicas:
            raise Unfit(
                f"hsdp divides its seats into replicas of 2 or more, and ways = {self.ways} is not "
                f"{replicas} replicas x so many; nearest: ways = {max(2, round(self.ways / replicas)) * replicas}"
            )
        return sharded_seats(self, host, batch, execution)

    def build(
        self, workload: Workload, model: nn.Module, seat: Seat, train: TrainSpec, execution: ExecutionSpec
    ) -> Learner:
        from escala.strategies.sharded import sharded

        mesh = (self._replicas, self.ways // self._replicas)
        return sharded(workload, model, seat, train, execution, self.options, mesh)
