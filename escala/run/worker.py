"""The process of one seat: `python -m escala.run.worker EVENTS_FD MARKS_FILE PARENT_PID`, the job on its input."""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import msgspec

from escala.plan.child import die_with
from escala.run.assignment import Assignment, Message
from escala.run.marks import Marks
from escala.terms.errors import Interrupted
from escala.terms.events import TrialMoved

_SAY_EVERY_S = 0.2


def main() -> int:
    """Run the seat; 0 when its result was sent."""
    events, marks_file, parent = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    die_with(parent)
    marks = Marks(Path(marks_file))
    marks.start_beating()
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=Assignment)

    # Imported only now: torch takes a second or more, during which the heart already beats.
    from escala.run.failure import failure_of
    from escala.run.group import leave, meet
    from escala.run.limit import limited
    from escala.run.peer_loop import sit_with_peer
    from escala.run.seat import sit
    from escala.strategies import STRATEGIES

    try:
        group = meet(
            job.trial.seats,
            job.rank,
            Path(job.private),
            job.timeout_s,
            needs_group=STRATEGIES[job.trial.strategy.name].grouped,
            captured=bool(job.trial.execution.capture),
        )
        say, edge = _speaker(events, job.rank), _edge(events, job.rank)
        with limited(job.trial.seats[job.rank].devices, job.trial.memory_gib):
            if job.trial.peer is not None:
                result = sit_with_peer(job, say, marks.step, edge)
            else:
                result = sit(job, group, say, marks.step, marks.asked_to_stop, edge)
    except BaseException as error:
        if not isinstance(error, Interrupted):
            traceback.print_exc()
        send(events, Message(failure=failure_of(error, job.trial.seats[job.rank].devices)))
        return 1
    send(events, Message(result=result))
    leave()
    return 0


def send(events: int, message: Message) -> None:
    """One line, whole, to the parent."""
    line = msgspec.json.encode(message) + b"\n"
    while line:
        line = line[os.write(events, line) :]


def _edge(events: int, rank: int) -> Callable[[], None]:
    """Rank 0 tells of phases for all seats, which begin and end them together."""

    def edge() -> None:
        if rank == 0:
            send(events, Message(edge=True))

    return edge


def _speaker(events: int, rank: int) -> Callable[[TrialMoved], None]:
    """Rank 0 speaks for all seats, a few times a second and at each change of phase."""
    spoken = {"at": float("-inf")}
    phases = [""]

    def say(moved: TrialMoved) -> None:
        now = time.monotonic()
        if rank == 0 and (now - spoken["at"] >= _SAY_EVERY_S or moved.phase != phases[-1]):
            spoken["at"] = now
            phases[:] = [moved.phase]
            send(events, Message(moved=moved))

    return say


if __name__ == "__main__":
    sys.exit(main())
