"""Puts a pipeline seat's learner together, in the order of `learner.assemble`, and its state with the others'."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial

import msgspec
import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from escala.execution.batchnorm import arrange
from escala.execution.compiled import compiled
from escala.execution.dropout import draw_by_row, nothing_drawn
from escala.execution.dropout_kernel import with_dropout_kernel
from escala.execution.memory_format import laid_out
from escala.execution.optimizer_kernel import with_kernel
from escala.execution.piece import Piece
from escala.execution.precision import narrowed, parameter_type, set_flags
from escala.execution.schedule import full_rate
from escala.execution.stepping import Stepper
from escala.store.checkpoint import check_keys
from escala.strategies.balance import spans
from escala.strategies.base import Learner, State
from escala.strategies.line import Line, clip_over, groups_of
from escala.strategies.parts import Part, check_seats, parts_of, under_names
from escala.strategies.passage import Crew
from escala.strategies.relay import Relay
from escala.strategies.seating import share_of
from escala.strategies.sharing import Sharing
from escala.strategies.stage import Held, StageLearner
from escala.strategies.union import gathered
from escala.terms.errors import Unfit
from escala.terms.experiment import ExecutionSpec, TrainSpec
from escala.terms.trial import Seat
from escala.workloads.base import Workload


def assemble_stages(
    workload: Workload,
    model: nn.Module,
    seat: Seat,
    train: TrainSpec,
    execution: ExecutionSpec,
    line: Line,
    split: Sequence[int],
    cut: Callable[[int], Sequence[slice]],
) -> Learner:
    """8-bit layers -> batch normalisation -> dropout -> cut into stages -> place on the device -> precision -> memory
    format -> compile -> what it has in common with other seats -> optimiser.

    What exchanges layers comes before the cut, and what takes memory of a device after it: the network as a whole
    need not fit there. `cut` gives the microbatches of so many rows. Raises `Unfit`.
    """
    set_flags(execution.precision)
    device = torch.device(seat.devices[0])
    if execution.batchnorm == "local" and execution.at_once is None and len(cut(seat.batch)) > 1:
        _refuse_local_norm(model, len(cut(seat.batch)))
    model = narrowed(model, execution.precision)
    model, piece = arrange(model, execution.batchnorm, execution.unit, line.replica)
    if execution.by_row:
        told = piece or Piece()
        model, draws = draw_by_row(model, train.seed, told)
        piece = told if draws else piece
    model = with_dropout_kernel(model, execution.dropout_kernel)
    parts = parts_of(workload, model)
    stages = [[parts[number] for number in span] for span in spans(split)]
    check_seats([(part, stage % line.seats) for stage, some in enumerate(stages) for part in some])
    names = {id(weight): name for name, weight in model.named_parameters()}
    values = model.state_dict(keep_vars=True)
    shapes = {name: tuple(value.shape) for name, value in values.items()}
    same = {id(value): name for name, value in reversed(values.items())}
    aliases = {name: same[id(value)] for name, value in values.items()}
    holders = _holders(stages, line)
    optimizer = workload.optimizer(model.parameters(), msgspec.structs.replace(train, lr=full_rate(train)))
    grouping = [[names[id(weight)] for weight in group["params"]] for group in optimizer.param_groups]
    tied = [(weight, holders[id(weight)]) for weight in model.parameters() if len(holders[id(weight)]) > 1]

    core = under_names([part for stage in line.own for part in stages[stage]])
    core = laid_out(core.to(device, parameter_type(execution.precision)), execution.memory_format)
    judged = {stage: nn.Sequential(*(part.module for part in stages[stage])) for stage in line.own}
    trained = {stage: compiled(made, execution.compile, workload) for stage, made in judged.items()}
    own = {id(weight) for weight in core.parameters()}
    for group in optimizer.param_groups:
        group["params"] = [weight for weight in group["params"] if id(weight) in own]
    optimizer = with_kernel(optimizer, execution.optimizer_kernel)
    groups = groups_of(line, tied)
    counted = [weight for weight in core.parameters() if holders[id(weight)][0] == line.place]
    nothing = torch.zeros((), device=device, dtype=parameter_type(execution.precision))
    clip = partial(clip_over, counted=counted, group=groups.whole, nothing=nothing)
    unit = execution.unit
    relay = Relay(device, groups.channels)
    watch = (lambda: nothing_drawn(core, device)) if execution.by_row else nullcontext
    return StageLearner(
        Held(core, judged, shapes),
        Crew(workload, trained, line, relay, piece, watch, execution.precision, device),
        groups,
        Stepper(optimizer, train, execution.precision, device, clip),
        _sharing(core, names, grouping, shapes, aliases, line),
        cut=cut,
        first_row=lambda size: share_of(seat.rows, train.batch, size, unit).start,
        detect=execution.unused == "detect",
    )


def _refuse_local_norm(model: nn.Module, many: int) -> None:
    layers = [name for name, layer in model.named_modules() if isinstance(layer, _BatchNorm)]
    if layers:
        raise Unfit(
            f"batch normalisation ({layers[0] or 'the network'}) would go by the rows of each of {many} microbatches "
            "alone; set batchnorm = ghost:N, by which every strategy goes alike, or microbatches = 1"
        )


def _holders(stages: Sequence[Sequence[Part]], line: Line) -> dict[int, list[int]]:
    """The places in the pipeline that hold each weight, by its identity."""
    found = dict[int, list[int]]()
    for stage, some in enumerate(stages):
        for part in some:
            for weight in part.module.parameters():
                places = found.setdefault(id(weight), [])
                if stage % line.seats not in places:
                    places.append(stage % line.seats)
    return {weight: sorted(places) for weight, places in found.items()}


def _sharing(
    core: nn.Module,
    names: Mapping[int, str],
    grouping: Sequence[Sequence[str]],
    shapes: Mapping[str, tuple[int, ...]],
    aliases: Mapping[str, str],
    line: Line,
) -> Sharing:
    """Whole states of the parts that the seats of the first pipeline hold, and this seat's part of a whole one.

    A weight under several names goes by the network's first, which this seat may not have.
    """
    first = {name: names[id(weight)] for name, weight in core.named_parameters()}

    def whole(snapshot: State) -> State:
        states = snapshot["optimizer"]["state"]
        mine = {"model": snapshot["model"], "state": {first[name]: values for name, values in states.items()}}
        parts = gathered(mine if line.replica == 0 else {})
        model = {name: value for part in parts if part for name, value in part["model"].items()}
        # A module that stands at several places is held under the first one's name.
        model |= {name: model[held].clone() for name, held in aliases.items() if name not in model and held in model}
        state = {name: values for part in parts if part for name, values in part["state"].items()}
        groups = [
            {**group, "params": list(all_of)}
            for group, all_of in zip(snapshot["optimizer"]["groups"], grouping, strict=True)
        ]
        return {
            # In the order of the network, as one seat alone would have it.
            "model": {name: model[name] for name in shapes if name in model},
            "optimizer": {
                "state": {n: state[n] for group in grouping for n in group if n in state},
                "groups": groups,
            },
            "progress": snapshot["progress"],
        }

    def part(state: State) -> State:
        given = {name: tuple(value.shape) for name, value in state["model"].items()}
        check_keys(dict(shapes), given, "state")
        held = {name: own for own, name in first.items()}
        return {
            "model": {name: state["model"][name] for name in core.state_dict()},
            "optimizer": {
                "state": {held[n]: values for n, values in state["optimizer"]["state"].items() if n in held},
                "groups": [
                    {**group, "params": [held[name] for name in group["params"] if name in held]}
                    for group in state["optimizer"]["groups"]
                ],
            },
            "progress": state["progress"],
        }

    return Sharing(whole=whole, part=part, together=True)
