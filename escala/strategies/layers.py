"""Layers: consecutive parts of the network on different devices of one process, which all rows pass at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import msgspec

from escala.execution.exchange import refuse_exchange
from escala.strategies.balance import in_words
from escala.strategies.base import PLAIN, Learner, Strategy
from escala.strategies.seating import places, refuse_capture, threads_per_seat
from escala.terms.errors import Unfit
from escala.terms.experiment import ExecutionSpec, TrainSpec
from escala.terms.host import Host
from escala.terms.trial import Seat

if TYPE_CHECKING:
    from torch import Tensor, nn

    from escala.workloads.base import Workload


@dataclass(frozen=True)
class Layers(Strategy):
    """One seat with several devices, one of which works at a time: it makes room, not speed."""

    takes: ClassVar[tuple[str, ...]] = ("split",)

    @property
    def shares(self) -> int:
        return 1

    @property
    def stages(self) -> int:
        return self.ways

    def seats(self, host: Host, batch: int, execution: ExecutionSpec = PLAIN) -> tuple[Seat, ...]:
        if self.device == "cpu" and not self.simulate:
            raise Unfit("layers puts parts of a network on several devices, and the processors are one; use single")
        if self.ways < 2:
            raise Unfit("layers divides the network among 2 devices or more; use single for one")
        split = self.options.split
        if split is not None and len(split) != self.ways:
            raise Unfit(f"split names {len(split)} stages; there are {self.ways} devices")
        refuse_capture(execution, "layers")
        refuse_exchange(execution, "layers has one process, which exchanges nothing")
        if execution.transport is not None:
            raise Unfit(f"layers has one process, which exchanges nothing by transport = {execution.transport}")
        if execution.compile:
            raise Unfit("torch.compile takes a network for one device; use pipeline, which compiles each stage")
        spots = places(host, self.device, self.ways, simulate=self.simulate)
        if any(node > 0 for node, _ in spots):
            raise Unfit("layers cannot leave its one process, so not its one node; use pipeline")
        devices = tuple(device for _, device in spots)
        return (Seat(0, 0, devices, (0, batch), threads_per_seat(host, 1, self.device)),)

    def decide(
        self,
        workload: Workload,
        model: nn.Module,
        seat: Seat,
        execution: ExecutionSpec,
        sample: Callable[[int], tuple[Tensor, Tensor]],
    ) -> tuple[Strategy, dict[str, str]]:
        from escala.strategies.weigh import split_of

        rows = sample(min(seat.batch, execution.at_once or seat.batch))
        split = split_of(workload, model, execution, rows, self.ways, self.options.split, simulate=self.simulate)
        return replace(self, options=msgspec.structs.replace(self.options, split=split)), {"stages": in_words(split)}

    def build(
        self, workload: Workload, model: nn.Module, seat: Seat, train: TrainSpec, execution: ExecutionSpec
    ) -> Learner:
        import torch

        from escala.strategies.chain import Chain, spread
        from escala.strategies.learner import assemble

        split = self.options.split
        if split is None:
            raise RuntimeError("layers is built once it was decided where the network is cut")
        devices = [torch.device(name) for name in seat.devices]
        return assemble(
            workload,
            model,
            seat,
            train,
            execution,
            place=lambda whole, _: spread(workload, whole, split, devices),
            wrap=lambda placed: Chain(workload, placed, split, devices),
            evaluate_wrapped=True,
            outputs_on=devices[-1],
        )
