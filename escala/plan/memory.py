"""How much memory a trial will take on each device, from what a traced step holds and what a strategy divides."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from escala.execution.order import chunks_of
from escala.plan.estimate import EXCHANGED, Estimate, product_workspace
from escala.plan.memory_copies import copied
from escala.plan.memory_stages import staged
from escala.plan.preflight import Facts
from escala.plan.traces import Trace, key_of
from escala.terms.experiment import StrategyOptions
from escala.terms.host import Host
from escala.terms.trial import Seat, StrategyUse, Trial


class Gathering(Struct, frozen=True):
    """How weights are put together for a pass: `blocks` at a time, `stay` until the way back, `narrow` in 16 bits.

    `aside`: the seat's own shares, and the optimiser's step, are in the host's memory.
    """

    blocks: int = 1
    stay: bool = False
    narrow: bool = False
    aside: bool = False


class Division(Struct, frozen=True):
    """Into how many parts a strategy divides what a whole network holds, in equal shares.

    `buckets`: gradients lie in buckets that are there all the time. `gathers`: the weights of a group
    of blocks are put together for its pass, those of the next one meanwhile, and the gradients of one before they are
    divided. `exchanged`: what is copied to be sent, at most. `carried`: so many seats have memory for all sums of
    gradients, and for what the others bring of the share that each adds up.
    """

    parameters: int = 1
    gradients: int = 1
    optimizer: int = 1
    buckets: bool = False
    gathers: Gathering | None = None
    exchanged: int = 0
    carried: int = 0


def division(use: StrategyUse) -> Division | None:
    """What each seat of one device holds; None: not known.

    single, and data-parallel on one device: all. ddp: all, gradients in buckets. zero1: the optimiser's state in
    shares. fsdp: weights, gradients and state in shares (Rajbhandari et al., arXiv:1910.02054); hsdp: in shares of
    one replica. tensor: the trace has only the seat's part, with `shard` cut once more.
    """
    ways = use.ways
    match use.name:
        case "single" | "data-parallel":
            return Division()
        case "ddp":
            return Division(buckets=True)
        case "zero1":
            return Division(optimizer=ways, buckets=True)
        case "fsdp" | "hsdp":
            shards = ways if use.name == "fsdp" else max(1, ways // (use.options.replicas or 2))
            return Division(shards, shards, shards, gathers=_gathering(use.options))
        case "tensor":
            replicas = use.options.replicas or 1
            if use.options.shard:
                return Division(replicas, replicas, replicas, gathers=_gathering(use.options))
            return Division(exchanged=EXCHANGED if replicas > 1 else 0)
    return None


def _gathering(options: StrategyOptions) -> Gathering:
    return Gathering(options.group, not options.reshard, options.narrow, options.offload == "cpu")


def estimate(trace: Trace, divided: Division, *, several: bool = False) -> Estimate:
    """What one seat holds on a device; `several` passes make a step."""
    gathers = divided.gathers
    here = gathers is None or not gathers.aside
    weights = kept = here * trace.parameters // divided.parameters
    gradients = here * trace.gradients // divided.gradients
    state = here * trace.optimizer // divided.optimizer
    stepping = here * trace.stepping // divided.optimizer
    kept += trace.buffers
    passing, with_gradients = trace.passing, trace.with_gradients
    if gathers is not None:
        # Two groups' weights and one's gradients, but never more than there are beside this seat's share.
        group = _largest(trace, gathers.blocks)
        gathered = trace.parameters if gathers.stay else min(2 * group, trace.parameters - weights)
        weights += gathered // 2 if gathers.narrow else gathered
        others = trace.gradients - gradients
        # Those of several passes are added up before they are divided.
        gradients += others if several else min(group, others)
        if gathers.narrow:
            passing, with_gradients = passing - trace.casts, with_gradients - trace.casts
    if divided.buckets or several:
        working = gradients + passing
    else:
        working = max(passing, with_gradients - (trace.gradients - gradients))
    after = gradients + max(stepping, min(divided.exchanged, gradients), trace.judging)
    carried = trace.gradients * (2 * divided.carried - 1) // divided.carried if divided.carried else 0
    peak = weights + trace.buffers + state + kept + carried + max(working, after)
    return Estimate(peak, weights, trace.buffers, gradients + carried, state, passing, stepping, kept)


def _largest(trace: Trace, together: int) -> int:
    firsts = range(0, len(trace.blocks), together)
    return max((sum(trace.blocks[first : first + together]) for first in firsts), default=0)


def estimates(trial: Trial, facts: Facts, host: Host) -> dict[str, Estimate]:
    """By device, as a record has its peaks: seats that share a device are added up. Empty where nothing is known."""
    trace = trace_of(trial, facts)
    if trace is None or why_unknown(trial, facts) is not None:
        return {}
    found = dict[str, Estimate]()
    for seat in trial.seats:
        # One node like another: devices have the same names on each.
        if seat.node != trial.seats[0].node:
            continue
        judging = _judging_of(trace, judged_at_once(trial, seat, trace.judged, facts.use.rows))
        for number, (device, own) in enumerate(zip(seat.devices, _of_seat(trial, seat, judging), strict=False)):
            if device not in seat.devices[:number]:
                own = _with_data(device, trial, facts, own)
                own = _with_workspace(own, product_workspace(device, host))
            found[device] = _added(found[device], own) if device in found else own
    return found


def why_unknown(trial: Trial, facts: Facts) -> str | None:
    """Why nothing can be told of the memory of this trial before it runs; None: something can."""
    if trial.peer is not None:
        return f"what {trial.peer} holds is not traced"
    if trial.execution.microbatch == "max":
        return "microbatch = max is found when the trial runs"
    trace = trace_of(trial, facts)
    if trace is None:
        return f"{trial.strategy.name} is not in the table of what is divided by what"
    return trace.unknown


def trace_of(trial: Trial, facts: Facts) -> Trace | None:
    """The trace that this trial needs, if it was made."""
    key = key_of(trial.strategy, trial.train, trial.execution)
    return next((trace for trace in facts.traces if trace.key == key), None)


def peaks(found: Mapping[str, Estimate]) -> dict[str, int]:
    """Bytes by device, as in a record."""
    return {device: one.peak for device, one in found.items()}


def _of_seat(trial: Trial, seat: Seat, trace: Trace) -> tuple[Estimate, ...]:
    """By the seat's devices; empty where nothing is known."""
    several = seat.batch > (trial.execution.at_once or seat.batch)
    if trace.key.copies > 1:
        return copied(trace, len(seat.devices), several=several)
    divided = division(trial.strategy)
    if divided is None:
        return staged(trial, seat, trace)
    between_gpus = trial.execution.copies_between(trial.strategy.device)
    if trial.execution.overlap == "optimizer" or between_gpus:
        carried = trial.strategy.ways if between_gpus and trial.strategy.ways > 1 else 0
        divided = msgspec.structs.replace(divided, buckets=False, carried=carried)
    return (estimate(trace, divided, several=several),)


def judged_at_once(trial: Trial, seat: Seat, judged: int, rows: Mapping[str, int]) -> int:
    """Of `judged` rows, as many as are judged at once, how many this seat ever has in one pass.

    A budget of steps, or a look at where time goes, ends without judging any.
    """
    if trial.train.steps is not None or trial.role == "profile" or not judged:
        return 0
    shares, most = len({one.share for one in trial.seats}), 0
    for name, many in rows.items():
        own = chunks_of(many, judged, seat.share, shares)
        if name != "train" and own:
            most = max(most, min(judged, many - own.start * judged))
    return most


def _judging_of(trace: Trace, rows: int) -> Trace:
    """With what judging so many rows takes: as it was traced, or that of more rows in proportion."""
    share = rows / max(1, trace.judged)
    along = tuple(
        msgspec.structs.replace(part, taken=round(share * part.taken), judging=round(share * part.judging))
        for part in trace.along
    )
    judging = dict(trace.ends).get(rows, round(share * trace.judging))
    return msgspec.structs.replace(trace, judging=judging, along=along)


def _with_workspace(own: Estimate, workspace: int) -> Estimate:
    workspace *= own.multiplies
    return msgspec.structs.replace(own, peak=own.peak + workspace, workspace=workspace)


def _with_data(device: str, trial: Trial, facts: Facts, own: Estimate) -> Estimate:
    """With the data that lie on the device, and on a processor the program itself."""
    stays = device == "cpu" or trial.execution.feed == "resident"
    data = facts.row_bytes * sum(facts.use.rows.values()) if stays else 0
    process = facts.process_bytes if device == "cpu" else 0
    return msgspec.structs.replace(own, peak=own.peak + data + process, data=data, process=process)


def _added(one: Estimate, other: Estimate) -> Estimate:
    numbers = [name for name in Estimate.__struct_fields__ if name != "multiplies"]
    return Estimate(
        **{name: getattr(one, name) + getattr(other, name) for name in numbers},
        multiplies=one.multiplies or other.multiplies,
    )
