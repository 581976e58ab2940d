"""Pipeline: consecutive stages of the network on different seats, through which rows pass in microbatches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import msgspec

from escala.execution.blocks import blocks
from escala.execution.exchange import refuse_exchange
from escala.strategies.balance import in_words
from escala.strategies.base import PLAIN, Learner, Strategy
from escala.strategies.seating import data_parallel_seats, divide, pieces, refuse_capture
from escala.strategies.timetable import bubble
from escala.terms.errors import Unfit
from escala.terms.experiment import ExecutionSpec, PipelineSchedule, TrainSpec
from escala.terms.host import Host
from escala.terms.trial import Seat

if TYPE_CHECKING:
    from torch import Tensor, nn

    from escala.strategies.line import Line
    from escala.workloads.base import Workload

MICROBATCHES = 4
"""For each seat, where nobody says how many: from there on GPipe's authors found the bubble negligible."""
CHUNKS = 2


@dataclass(frozen=True)
class Pipeline(Strategy):
    """`ways` seats in `replicas` pipelines, across which gradients are added up. All of a pipeline see its rows."""

    grouped: ClassVar[bool] = True
    takes: ClassVar[tuple[str, ...]] = ("replicas", "schedule", "microbatches", "chunks", "split")

    @property
    def shares(self) -> int:
        replicas = self.options.replicas or 1
        return replicas if self.ways % replicas == 0 else 1

    @property
    def schedule(self) -> PipelineSchedule:
        return self.options.schedule or "1f1b"

    @property
    def chunks(self) -> int:
        """Stages of one seat."""
        return (self.options.chunks or CHUNKS) if self.schedule == "interleaved" else 1

    @property
    def stages(self) -> int:
        return self.ways // self.shares * self.chunks

    def seats(self, host: Host, batch: int, execution: ExecutionSpec = PLAIN) -> tuple[Seat, ...]:
        self._check_options()
        refuse_capture(execution, "pipeline")
        self._check_execution(execution)
        each = self.ways // self.shares
        rows = divide(batch, self.shares, execution.unit)
        self._check_microbatches(min(last - first for first, last in rows), execution)
        places = data_parallel_seats(host, self.device, self.ways, batch, simulate=self.simulate)
        return tuple(
            msgspec.structs.replace(
                seat,
                rows=rows[seat.rank // each],
                replica=seat.rank // each,
                # The last stage knows the loss.
                tells=seat.rank % each == each - 1,
            )
            for seat in places
        )

    def decide(
        self,
        workload: Workload,
        model: nn.Module,
        seat: Seat,
        execution: ExecutionSpec,
        sample: Callable[[int], tuple[Tensor, Tensor]],
    ) -> tuple[Strategy, dict[str, str]]:
        from escala.strategies.weigh import split_of

        rows = self.microbatch(seat.batch, execution)
        split = split_of(
            workload, model, execution, sample(rows), self.stages, self.options.split, simulate=self.simulate
        )
        decided = replace(self, options=msgspec.structs.replace(self.options, split=split))
        return decided, {"stages": in_words(split), "pipeline": self._described(seat.batch, execution)}

    def build(
        self, workload: Workload, model: nn.Module, seat: Seat, train: TrainSpec, execution: ExecutionSpec
    ) -> Learner:
        from escala.strategies.stages import assemble_stages

        if self.options.split is None:
            raise RuntimeError("a pipeline is built once it was decided where the network is cut")
        line, cut = self._line(seat), self.cut(execution)
        return assemble_stages(workload, model, seat, train, execution, line, self.options.split, cut)

    def microbatch(self, batch: int, execution: ExecutionSpec) -> int:
        """Into how many rows the first microbatch of so many goes."""
        first = self.cut(execution)(batch)[0]
        rows: int = first.stop - first.start
        return rows

    def _line(self, seat: Seat) -> Line:
        from escala.strategies.line import Line

        each = self.ways // self.shares
        return Line(self.schedule, each, self.chunks, self.shares, seat.rank // each, seat.rank % each)

    def cut(self, execution: ExecutionSpec) -> Callable[[int], tuple[slice, ...]]:
        """Microbatches of so many rows: of a size that `execution` gives, or so many of about equal size."""
        unit = execution.unit
        if execution.at_once is not None:
            size = execution.at_once
            return lambda rows: pieces(rows, size, unit)
        many = self.options.microbatches or MICROBATCHES * (self.ways // self.shares)
        return lambda rows: tuple(
            slice(first, last) for first, last in divide(rows, min(many, blocks(rows, unit)), unit)
        )

    def _described(self, rows: int, execution: ExecutionSpec) -> str:
        many = len(self.cut(execution)(rows))
        idle = bubble(self.schedule, self.ways // self.shares, self.chunks, many)
        return f"{self.schedule}, {many} microbatches, a bubble of {idle:.1%} if all stages took equally long"

    def _check_options(self) -> None:
        replicas, chunks, split = self.options.replicas or 1, self.options.chunks, self.options.split
        if self.ways % replicas or self.ways // replicas < 2:
            raise Unfit(
                f"{self.ways} ways among {replicas} replicas are {self.ways / replicas:g} seats each; a pipeline has "
                f"a whole number of them, 2 or more: set ways to a multiple of {replicas}, {2 * replicas} or more"
            )
        if chunks is not None and self.schedule != "interleaved":
            raise Unfit(f"chunks = {chunks} is for schedule = interleaved; with {self.schedule} a seat has one stage")
        if split is not None and len(split) != self.stages:
            raise Unfit(f"split names {len(split)} stages; this pipeline has {self.stages}")

    def _check_execution(self, execution: ExecutionSpec) -> None:
        refuse_exchange(execution, "a pipeline adds up gradients without DDP")
        if execution.transport == "shm":
            raise Unfit("transport = shm adds up the gradients of whole networks, and a pipeline's seats hold parts")
        if execution.batchnorm == "sync":
            raise Unfit(
                "batchnorm = sync needs all rows in one pass, and a pipeline has them in microbatches; use ghost:N"
            )
        if execution.precision == "fp16":
            raise Unfit(
                "precision = fp16 leaves out steps by the gradients of the whole network, and a stage sees its "
                "own; use bf16"
            )

    def _check_microbatches(self, rows: int, execution: ExecutionSpec) -> None:
        many = self.options.microbatches
        if many is None:
            return
        if execution.at_once is not None:
            raise Unfit(
                f"options.microbatches = {many} and execution.microbatch = {execution.microbatch} both say how rows "
                "are cut; leave one of them out"
            )
        if many > (most := blocks(rows, execution.unit)):
            what = "rows" if execution.unit == 1 else f"ghosts of {execution.unit} rows"
            raise Unfit(f"{many} microbatches of {most} {what}; {most} is the most")
