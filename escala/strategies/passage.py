"""One step's way through the stages of one seat of a pipeline, act by act."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from escala.execution.piece import Piece
from escala.execution.precision import autocast
from escala.strategies.arrival import Arrivals
from escala.strategies.line import Line
from escala.strategies.parts import tensors_of
from escala.strategies.relay import Awaited, Form, Relay, carried_of
from escala.strategies.timetable import Act
from escala.terms.experiment import Precision
from escala.workloads.base import Workload


@dataclass(frozen=True)
class Crew:
    """What is the same in every step. `stages`: those of this seat, by number.

    `piece` is told of each way forward, if any layer asks; `watch` is held around it and its way back.
    """

    workload: Workload
    stages: Mapping[int, nn.Module]
    line: Line
    relay: Relay
    piece: Piece | None
    watch: Callable[[], AbstractContextManager[object]]
    precision: Precision
    device: torch.device


@dataclass(frozen=True)
class Load:
    """The rows of one step, `cuts` their microbatches.

    `start` is the first one's place in the global batch of `size` rows, `count` the global denominator, `made` how
    many optimiser steps the training has made before this one.
    """

    inputs: Tensor
    targets: Tensor
    cuts: Sequence[slice]
    count: int
    size: int
    start: int
    made: int


@dataclass(frozen=True)
class _Gone:
    """What one way forward left for the way back; `form`: of what it was given by another seat."""

    arrivals: Arrivals
    form: Form | None
    outputs: Sequence[Tensor]


class Passage:
    """Does one step's acts. `losses`: of each microbatch, SUMMED over its rows, where the last stage is here."""

    def __init__(self, crew: Crew, load: Load) -> None:
        self.losses = list[Tensor]()
        self._crew, self._load = crew, load
        self._passes = 0
        # By stage and microbatch: what is on its way here, what was made, and what is to be sent.
        self._coming = dict[tuple[int, int], tuple[Form, Awaited]]()
        self._coming_back = dict[tuple[int, int], Awaited]()
        self._made = dict[tuple[int, int], Any]()
        self._gone = dict[tuple[int, int], _Gone]()
        self._sent = dict[tuple[int, int], Form]()
        self._back = dict[tuple[int, int], tuple[Form, list[Tensor]]]()

    def go(self, acts: Sequence[Act]) -> None:
        """All acts of this seat, in their order."""
        do = {
            ("receive", "forward"): self._receive,
            ("compute", "forward"): self._forward,
            ("send", "forward"): self._send,
            ("receive", "backward"): self._receive_back,
            ("compute", "backward"): self._backward,
            ("send", "backward"): self._send_back,
        }
        for act in acts:
            do[act.verb, act.way](act.stage, act.microbatch)

    def _receive(self, stage: int, number: int) -> None:
        key = self._key(stage, number)
        self._coming[stage, number] = self._crew.relay.receive(self._crew.line.rank_of(stage - 1), key)

    def _forward(self, stage: int, number: int) -> None:
        crew, load, cut = self._crew, self._load, self._load.cuts[number]
        given: Any = load.inputs[cut]
        arrivals, form = Arrivals(), None
        if stage > 0:
            form, coming = self._coming.pop((stage, number))
            pairs = zip(form.kinds, coming.wait(), strict=True)
            given = carried_of(form, [arrivals.begin(one, learns=kind.learns) for kind, one in pairs])
        if crew.piece is not None:
            rows, start = (cut.stop - cut.start if load.count else 0), load.start + cut.start
            crew.piece.begin(rows, load.size, first=self._passes == 0, start=start, at=load.made)
        self._passes += 1
        with crew.watch(), autocast(crew.precision, crew.device):
            outputs = crew.stages[stage](given)
            if self._ends(stage):
                outputs = crew.workload.loss(outputs, load.targets[cut])
                self.losses.append(outputs.detach())
        self._gone[stage, number] = _Gone(arrivals, form, tensors_of(outputs))
        if not self._ends(stage):
            self._made[stage, number] = outputs

    def _send(self, stage: int, number: int) -> None:
        outputs, peer = self._made.pop((stage, number)), self._crew.line.rank_of(stage + 1)
        self._sent[stage, number] = self._crew.relay.send(outputs, peer, self._key(stage + 1, number))

    def _receive_back(self, stage: int, number: int) -> None:
        form, peer = self._sent.pop((stage, number)), self._crew.line.rank_of(stage + 1)
        self._coming_back[stage, number] = self._crew.relay.receive_back(form, peer)

    def _backward(self, stage: int, number: int) -> None:
        gone, load = self._gone.pop((stage, number)), self._load
        if self._ends(stage):
            # Dividing by the global count here makes of the sums of all microbatches and replicas one mean.
            gradients = [torch.full_like(gone.outputs[0], 1 / load.count if load.count else 0.0)]
        else:
            gradients = self._coming_back.pop((stage, number)).wait()
        learned = [one for one in gone.outputs if one.requires_grad]
        if learned:
            with self._crew.watch():
                torch.autograd.backward(learned, gradients)
        if gone.form is not None:
            places = [place for place, kind in enumerate(gone.form.kinds) if kind.learns]
            self._back[stage, number] = (gone.form, gone.arrivals.gradients(places))

    def _send_back(self, stage: int, number: int) -> None:
        form, gradients = self._back.pop((stage, number))
        self._crew.relay.send_back(form, gradients, self._crew.line.rank_of(stage - 1))

    def _key(self, stage: int, number: int) -> tuple[object, ...]:
        """What has the same key has the same form: what this stage is given for rows of one shape, in training."""
        return stage, self._load.inputs[self._load.cuts[number]].shape, "training"

    def _ends(self, stage: int) -> bool:
        return stage + 1 == self._crew.line.stages
