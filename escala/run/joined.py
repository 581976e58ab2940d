"""Takes the seat that a launcher gave: torchrun, SLURM or MPI started the processes and set RANK and WORLD_SIZE.

Rank 0 keeps the campaign and tells the others, through the launcher's store, what to run. One process of each node
prepares the data. Trials run one after another in the same processes, which every record says.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from escala.plan.preflight import Question, preflight
from escala.plan.read import Loaded
from escala.run.assignment import Assignment, Failure, Message
from escala.run.campaign import Opened, doubts_of, opened
from escala.run.meeting import Place, open_store
from escala.run.merge import done_record, failed_record
from escala.run.power import without_energy
from escala.store import journal
from escala.terms.errors import EscalaError
from escala.terms.events import CampaignStarted, Note, TrialEnded, TrialStarted, Watcher
from escala.terms.experiment import MeasureSpec, WorkloadSpec
from escala.terms.record import Record
from escala.terms.trial import Trial

_LAST_WORDS_S = 15.0


class Turn(Struct, frozen=True):
    """What rank 0 tells the others to run next; `workload` is what its trial's data were prepared for."""

    trial: Trial
    workload: int


class Order(Struct, frozen=True):
    """What rank 0 tells once: how to measure, all workloads, and the trials in order."""

    measure: MeasureSpec
    workloads: tuple[WorkloadSpec, ...]
    turns: tuple[Turn, ...]


def run_joined(
    place: Place, loaded: Loaded, folder: Path, *, command: Sequence[str], watch: Watcher, repair: bool, retry: bool
) -> tuple[Record, ...]:
    """This process's seat in every trial whose number of seats is the world size; rank 0 returns the records."""
    if place.local_world == place.world:
        # All on one machine: nothing needs to listen, or to be reached, beyond it.
        os.environ["GLOO_SOCKET_IFNAME"] = os.environ["NCCL_SOCKET_IFNAME"] = "lo"
    store = open_store(place)
    if place.rank > 0:
        order = msgspec.json.decode(store.get("order"), type=Order)
        data = _data_of_node(place, order, store)
        for turn in order.turns:
            _take_turn(place, order.measure, turn, data[turn.workload], store, lambda _: None)
        store.get("end")
        return ()
    with ExitStack() as stack:
        ready = stack.enter_context(
            opened(
                loaded, folder, command, watch, repair, retry, (place.world // place.local_world, place.local_world)
            )
        )
        order = _order(place, ready, watch)
        store.set("order", msgspec.json.encode(order))
        data = _data_of_node(place, order, store, ready)
        watch(CampaignStarted(str(ready.campaign.folder), len(order.turns), 0))
        for number, turn in enumerate(order.turns, 1):
            watch(TrialStarted(turn.trial, number, len(order.turns)))
            record = _lead_turn(place, ready, order, turn, data[turn.workload], store, watch)
            journal.append(ready.campaign.records, record)
            watch(TrialEnded(record, number, len(order.turns)))
        store.set("end", b"")
        return tuple(journal.newest(journal.read(ready.campaign.records, curves=False).records).values())


def _order(place: Place, ready: Opened, watch: Watcher) -> Order:
    from escala.strategies import STRATEGIES

    workloads = tuple(facts.spec for facts in ready.before.facts)
    fitting, left_out = [], dict[str, str]()
    for trial in ready.todo:
        grouped = trial.unfit is None and STRATEGIES[trial.strategy.name].grouped
        if len(trial.seats) != place.world or not (grouped or place.world == 1):
            left_out[trial.label] = f"they do not have {place.world} seats"
        elif trial.execution.choose == "best":
            left_out[trial.label] = "their execution is found by runs that need processes of their own"
        else:
            fitting.append(Turn(trial, workloads.index(ready.before.of_trial(trial).spec)))
    for reason in dict.fromkeys(left_out.values()):
        labels = [label for label, why in left_out.items() if why == reason]
        watch(Note(f"left out, as {reason}: {', '.join(labels)}"))
    return Order(ready.experiment.measure, workloads, tuple(fitting))


def _data_of_node(place: Place, order: Order, store: Any, ready: Opened | None = None) -> list[str]:
    """Prepared folders by workload: made by one process of each node, read by all of it."""
    key = f"data {place.node}"
    if place.local_rank == 0:
        before = ready.before if ready else preflight(Question(order.workloads, prepare=True), lambda _: None)
        store.set(key, msgspec.json.encode([before.of(spec).folder for spec in order.workloads]))
    return msgspec.json.decode(store.get(key), type=list[str])


def _take_turn(
    place: Place, measure: MeasureSpec, turn: Turn, data: str, store: Any, watch: Watcher
) -> tuple[Message, float]:
    """Run this seat of one trial and leave what came of it in the store."""
    import torch.distributed as dist

    from escala.run.failure import failure_of
    from escala.run.group import group_of, leave, open_group
    from escala.run.limit import limited
    from escala.run.peer_loop import sit_with_peer
    from escala.run.seat import sit
    from escala.strategies import STRATEGIES

    began = time.monotonic()
    trial = turn.trial
    job = Assignment(
        trial=trial,
        rank=place.rank,
        data=data,
        private=tempfile.gettempdir(),
        launched=began,
        block_s=measure.block_s,
        timeout_s=measure.stall_s,
        meters=measure.meters,
    )

    try:
        if STRATEGIES[trial.strategy.name].grouped:
            prefixed = dist.PrefixStore(trial.id, store)  # type: ignore[attr-defined]
            captured = bool(trial.execution.capture)
            open_group(prefixed, trial.seats, place.rank, measure.stall_s, captured=captured)
        with limited(trial.seats[place.rank].devices, trial.memory_gib):
            if trial.peer is not None:
                message = Message(result=sit_with_peer(job, watch, lambda _: None))
            else:
                message = Message(result=sit(job, group_of(trial.seats, place.rank), watch, lambda _: None))
    except Exception as error:
        message = Message(failure=failure_of(error, trial.seats[place.rank].devices))
    finally:
        leave()
    store.set(f"{trial.id} {place.rank}", msgspec.json.encode(message))
    if message.failure is not None and place.rank > 0:
        # The launcher ends the other seats when one ends badly; rank 0 writes the record first.
        raise EscalaError("ENV-SEAT", f"rank {place.rank}", message.failure.reason)
    return message, time.monotonic() - began


def _lead_turn(
    place: Place, ready: Opened, order: Order, turn: Turn, data: str, store: Any, watch: Watcher
) -> Record:
    started = datetime.now(UTC).isoformat(timespec="seconds")
    own, wall_s = _take_turn(place, order.measure, turn, data, store, watch)
    trial, host = turn.trial, ready.before.host
    facts = ready.before.of(order.workloads[turn.workload])
    doubts = (*doubts_of(trial, facts, host), "shared process")
    messages = [own, *(_message_of(trial, rank, store) for rank in range(1, place.world))]
    results = [message.result for message in messages if message.result is not None]
    if len(results) == place.world:
        record = done_record(trial, host, facts, results, doubts)
        record = without_energy(record, "a launcher's processes all train, and none stands by to read meters")
    else:
        failures = [
            msgspec.structs.replace(message.failure, reason=f"rank {rank}: {message.failure.reason}")
            for rank, message in enumerate(messages)
            if message.failure is not None
        ]
        first = min(failures, key=lambda failure: failure.follow_up)
        record = failed_record(trial, host, facts, first, doubts)
    return msgspec.structs.replace(record, started=started, wall_s=wall_s)


def _message_of(trial: Trial, rank: int, store: Any) -> Message:
    key = f"{trial.id} {rank}"
    try:
        store.wait([key], timedelta(seconds=_LAST_WORDS_S))
        return msgspec.json.decode(store.get(key), type=Message)
    except RuntimeError:
        return Message(failure=Failure("failed", "ended without a word", follow_up=True))
