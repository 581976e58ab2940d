"""Optimiser steps by replayed graphs: batches are copied to where graphs read, losses from where they write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from escala.execution.capture import Recorder, recorded
from escala.execution.feed import Batch
from escala.terms.errors import Unfit

MOST_SHAPES = 8
"""Shapes of a batch that get graphs of their own."""
MOST_UNROLLED = 8
GRAPH_S = 1e-3
"""How long a graph of several steps may take, seconds: some twenty times what launching and copying take."""
WARM_STEPS = 11
"""Steps of the first shape before anything is recorded. DDP lays out its buckets anew after the first one, and times
the first ten with events; torch's notes on CUDA graphs give this number."""
WARM_STEPS_LATER = 3

Shape = tuple[object, ...]


class Recordable(Protocol):
    """Whoever makes the steps."""

    def record_step(self, inputs: Tensor, targets: Tensor, count: int, size: int, seed: Tensor) -> Tensor:
        """One optimiser step on a batch as the feed gives it; its sum of losses (0-d). `seed` is that of backward.

        Of `count` only whether it is 0 may matter, and nothing that differs from step to step.
        """

    def seed_of(self, count: int) -> float:
        """The seed of backward for a batch of which so many things count."""

    def hold(self) -> Callable[[], None]:
        """Notes all that a step changes; returns what puts it back into the same storages."""

    def finish_batches(self, complete: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]) -> None:
        """From now on batches come as `complete` takes them, which is called within the step."""

    def went(self, steps: int) -> None:
        """So many steps were replayed."""


@dataclass(frozen=True)
class _Graph:
    """Where one graph reads its batches and seeds, [steps, ...], and leaves its losses, [steps].

    `sent` are the seeds that lie there.
    """

    inputs: Tensor
    targets: Tensor
    seeds: Tensor
    losses: Tensor
    sent: list[float]
    replay: Callable[[], None]

    def play(self, batches: Sequence[Batch], seeds: list[float]) -> Tensor:
        """The losses of these batches, [steps]; nothing is waited for."""
        torch.stack([batch[0] for batch in batches], out=self.inputs)
        if self.targets is not self.inputs:
            torch.stack([batch[1] for batch in batches], out=self.targets)
        if seeds != self.sent:
            self.seeds.copy_(torch.tensor(seeds, dtype=self.seeds.dtype))
            self.sent[:] = seeds
        self.replay()
        return self.losses.clone()


class Replays:
    """Makes steps by graphs of `unroll` steps, and of one step for what is left of a block or comes before a change.

    Batches of another shape, such as the last one of an epoch, have graphs of their own, recorded when they first
    come. `open`: nobody has said yet how many steps go into one, and so it is one.
    """

    def __init__(self, recorder: Recorder, unroll: int | None, steps: Recordable, dtype: torch.dtype) -> None:
        self._recorder = recorder
        self.open = unroll is None
        self._unroll = unroll or 1
        self._steps = steps
        self._dtype = dtype
        self._graphs = dict[tuple[Shape, int], _Graph]()

    @property
    def graphs(self) -> int:
        """How many were recorded."""
        return len(self._graphs)

    def settle(self, step_s: float) -> int:
        """How many steps from now on go into a graph, where a step takes so many seconds.

        Launching a graph takes the longer, the more is in it, and the device waits for the first one of a block: so
        only short steps, which the host could not launch fast enough one by one, go together.
        """
        self.open = False
        self._unroll = max(1, min(MOST_UNROLLED, int(GRAPH_S / step_s)))
        return self._unroll

    def follow(
        self, batches: Iterator[Batch], mark: Callable[[int], None], first: int
    ) -> tuple[list[Tensor], list[int]]:
        """As `Learner.steps`."""
        losses, counts = list[Tensor](), list[int]()
        waiting = list[Batch]()
        shape: Shape = ()

        def play(some: Sequence[Batch]) -> None:
            losses.append(self._play(shape, some))
            counts.extend(count for _, _, count, _ in some)
            mark(first + len(counts))

        for batch in batches:
            if waiting and _shape_of(batch) != shape:
                for one in waiting:
                    play([one])
                waiting.clear()
            shape = _shape_of(batch)
            waiting.append(batch)
            if len(waiting) == self._unroll:
                play(waiting)
                waiting.clear()
        for one in waiting:
            play([one])
        return losses, counts

    def finish_batches(self, complete: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]) -> None:
        """As `Recordable.finish_batches`."""
        self._steps.finish_batches(complete)

    def prepare(self, batch: Batch) -> None:
        """Record all graphs that batches of this shape can need. Raises as `follow`."""
        shape = _shape_of(batch)
        for steps in sorted({1, self._unroll}):
            if (shape, steps) not in self._graphs:
                self._record(shape, [batch] * steps)

    def forget(self) -> None:
        """Let go of all graphs, as something lies elsewhere now."""
        self._graphs.clear()

    def _play(self, shape: Shape, batches: Sequence[Batch]) -> Tensor:
        if (shape, len(batches)) not in self._graphs:
            self._record(shape, batches)
        graph = self._graphs[shape, len(batches)]
        losses = graph.play(batches, [self._steps.seed_of(count) for _, _, count, _ in batches])
        self._steps.went(len(batches))
        return losses

    def _record(self, shape: Shape, batches: Sequence[Batch]) -> None:
        """Raises `Unfit` where the step cannot be recorded, or where there are too many shapes."""
        known = {other for other, _ in self._graphs}
        if shape not in known and len(known) == MOST_SHAPES:
            raise Unfit(
                f"capture records a graph for each shape of a batch, and these have more than {MOST_SHAPES}: rows of "
                "many lengths; pack or pad them to one length, or leave capture out"
            )
        inputs, targets, count, size = batches[0]
        read = torch.stack([batch[0] for batch in batches])
        wanted = read if inputs is targets else torch.stack([batch[1] for batch in batches])
        sent = [self._steps.seed_of(count)] * len(batches)
        seeds = torch.tensor(sent, dtype=self._dtype, device=read.device)
        losses = torch.zeros_like(seeds)

        def work() -> None:
            for number, seed in enumerate(seeds):
                found = self._steps.record_step(read[number], wanted[number], count, size, seed)
                losses[number].copy_(found)

        put_back = self._steps.hold()
        if shape not in known:
            steps = WARM_STEPS_LATER if known else WARM_STEPS
            with self._recorder.aside():
                for _ in range(-(-steps // len(batches))):
                    work()
        replay = recorded(self._recorder, work)
        put_back()
        self._graphs[shape, len(batches)] = _Graph(read, wanted, seeds, losses, sent, replay)


def _shape_of(batch: Batch) -> Shape:
    """What graphs are told apart by. An empty share counts as another shape: its losses are left out."""
    inputs, targets, count, size = batch
    return (inputs.shape, targets.shape, size, count > 0)
