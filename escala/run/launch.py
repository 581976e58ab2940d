"""Runs one trial: starts a process a seat, watches them, ends them all when one ends badly."""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from escala.plan.child import python
from escala.run.assignment import Assignment, Failure, Keeping, Message, SeatResult, profile_trace_name
from escala.run.marks import Marks, new_marks
from escala.terms.events import TrialMoved
from escala.terms.experiment import MeasureSpec
from escala.terms.trial import Trial

CAMPAIGN_VARIABLE = "ESCALA_CAMPAIGN"
_POLL_S = 0.1
# How long to wait, after a failure that may only echo another seat's end, for that end to show itself.
_ECHO_S = 2.0
_GOODBYE_S = 10.0
_LAUNCHER_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True)
class Ended:
    """How a trial's seats ended: a result of each, or the first cause of failure. `disturbed`: one stood still."""

    results: tuple[SeatResult, ...] = ()
    failure: Failure | None = None
    disturbed: bool = False


@dataclass
class _Seat:
    """A running worker as its parent sees it."""

    rank: int
    process: subprocess.Popen[bytes]
    pipe: int
    marks: Marks
    heard: float
    moved: float
    beats: int = -1
    step: int = -1
    pending: bytes = b""
    result: SeatResult | None = None
    failure: Failure | None = None
    stood_still: float = 0.0
    messages: list[Message] = field(default_factory=list)


def run_trial(
    trial: Trial,
    data: Path,
    log_folder: Path,
    measure: MeasureSpec,
    campaign: str,
    say: Callable[[TrialMoved], None],
    *,
    keeping: Keeping | None = None,
    stop: Callable[[], float | None] = lambda: None,
    probing: bool = False,
    edge: Callable[[], None] = lambda: None,
) -> Ended:
    """Run it to its end. No process of the trial is alive when this returns or raises.

    `edge` is called where a phase begins or ends. `probing`: a short run whose losses are compared, without dropout.
    `stop` is asked again and again; once it answers with seconds, the seats are asked to keep what they have and have
    so long for it.
    """
    private = Path(tempfile.mkdtemp(prefix="escala-"))
    log_folder.mkdir(parents=True, exist_ok=True)
    oom_kills = _oom_kills()
    seats = list[_Seat]()
    try:
        for rank in range(len(trial.seats)):
            seats.append(_start(trial, rank, data, private, log_folder, measure, campaign, keeping, probing))
        ended = _watch(seats, measure, say, stop, edge)
    finally:
        _end(seats)
        shutil.rmtree(private, ignore_errors=True)
    if ended.failure is not None and _oom_kills() > oom_kills:
        killed = Failure("out of memory", f"the kernel's out-of-memory killer ended it ({ended.failure.reason})")
        return Ended(failure=killed, disturbed=ended.disturbed)
    return ended


def _start(
    trial: Trial,
    rank: int,
    data: Path,
    private: Path,
    logs: Path,
    measure: MeasureSpec,
    campaign: str,
    keeping: Keeping | None,
    probing: bool,
) -> _Seat:
    reader, writer = os.pipe()
    marks_file = private / f"marks-{rank}"
    marks = new_marks(marks_file)
    now = time.monotonic()
    job = Assignment(
        trial=trial,
        rank=rank,
        data=str(data),
        private=str(private),
        launched=now,
        block_s=measure.block_s,
        timeout_s=measure.stall_s,
        meters=measure.meters,
        keeping=keeping,
        profile_trace=str(logs / profile_trace_name(rank)) if measure.profile == "trace" else None,
        probing=probing,
    )
    command = python("escala.run.worker", str(writer), str(marks_file), str(os.getpid()))
    try:
        with (logs / f"rank{rank}.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=(writer,),
                # A session of its own: signals from the terminal reach the parent alone, which ends its seats.
                start_new_session=True,
                env=_environment(os.environ, trial.seats[rank].threads, campaign),
            )
    finally:
        os.close(writer)
    os.set_blocking(reader, False)
    seat = _Seat(rank, process, reader, marks, heard=now, moved=now)
    assert process.stdin is not None
    # A broken pipe: it died at once, and watching it tells how.
    with contextlib.suppress(BrokenPipeError), process.stdin as stdin:
        stdin.write(msgspec.json.encode(job))
    return seat


def _environment(own: Mapping[str, str], threads: int, campaign: str) -> dict[str, str]:
    kept = {name: value for name, value in own.items() if name not in _LAUNCHER_VARIABLES}
    # Libraries size their pools when they are loaded, long before torch can be told.
    pools = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    return {**kept, **pools, CAMPAIGN_VARIABLE: campaign}


def _watch(
    seats: Sequence[_Seat],
    measure: MeasureSpec,
    say: Callable[[TrialMoved], None],
    stop: Callable[[], float | None],
    edge: Callable[[], None],
) -> Ended:
    stop_at = float("inf")
    with selectors.DefaultSelector() as selector:
        for seat in seats:
            selector.register(seat.pipe, selectors.EVENT_READ, seat)
        echo_until = float("inf")
        while True:
            for key, _ in selector.select(_POLL_S):
                if not _listen(key.data, say, edge):
                    selector.unregister(key.fd)
            now = time.monotonic()
            for seat in seats:
                _look_at(seat, measure, now)
            failed = [seat for seat in seats if seat.failure is not None]
            causes = [seat for seat in failed if seat.failure is not None and not seat.failure.follow_up]
            if failed and not causes:
                echo_until = min(echo_until, now + _ECHO_S)
            disturbed = any(seat.stood_still > measure.heartbeat_s / 4 for seat in seats)
            if causes or now >= echo_until:
                first = (causes or failed)[0]
                return Ended(failure=_named(first, len(seats)), disturbed=disturbed)
            if stop_at == float("inf") and (grace_s := stop()) is not None:
                stop_at = now + grace_s
                for seat in seats:
                    seat.marks.ask_to_stop()
            if now >= stop_at:
                return Ended(failure=Failure("interrupted", "ended before it had stopped by itself"))
            if all(seat.result is not None for seat in seats):
                return Ended(tuple(seat.result for seat in seats if seat.result is not None), None, disturbed)


def _listen(seat: _Seat, say: Callable[[TrialMoved], None], edge: Callable[[], None] = lambda: None) -> bool:
    """Take in what the seat sent; False when it will send no more."""
    while True:
        try:
            data = os.read(seat.pipe, 1 << 20)
        except BlockingIOError:
            return True
        if not data:
            return False
        *lines, seat.pending = (seat.pending + data).split(b"\n")
        for line in lines:
            message = msgspec.json.decode(line, type=Message)
            if message.edge:
                edge()
            if message.moved is not None:
                say(message.moved)
            seat.result = message.result or seat.result
            seat.failure = message.failure or seat.failure


def _look_at(seat: _Seat, measure: MeasureSpec, now: float) -> None:
    """Notice a seat that ended without a word, fell silent, or no longer makes steps."""
    if seat.result is not None or seat.failure is not None:
        return
    step, beats = seat.marks.read()
    if beats != seat.beats:
        if seat.beats >= 0:
            seat.stood_still = max(seat.stood_still, now - seat.heard)
        seat.heard, seat.beats = now, beats
    if step != seat.step:
        seat.moved, seat.step = now, step
    status = seat.process.poll()
    if status is not None:
        # Its last words may still be in the pipe.
        _listen(seat, lambda _: None)
        if seat.result is None and seat.failure is None:
            seat.failure = _unexplained_end(status, step)
    elif now - seat.heard > measure.heartbeat_s:
        seat.failure = Failure("failed", f"stood still for {measure.heartbeat_s:g} s at step {step}: stopped?")
    elif now - seat.moved > measure.stall_s:
        seat.failure = Failure("failed", f"made no step for {measure.stall_s:g} s after step {step}", follow_up=True)


def _unexplained_end(status: int, step: int) -> Failure:
    if status < 0:
        name = signal.Signals(-status).name
        return Failure("failed", f"killed by {name} at step {step}")
    if status == 128 + signal.SIGKILL:
        return Failure("out of memory", f"ended with code 137 at step {step}, as an out-of-memory killer leaves it")
    return Failure("failed", f"ended early at step {step} with code {status}")


def _named(seat: _Seat, seats: int) -> Failure:
    assert seat.failure is not None
    if seats == 1:
        return seat.failure
    return msgspec.structs.replace(seat.failure, reason=f"rank {seat.rank}: {seat.failure.reason}")


def _end(seats: Sequence[_Seat]) -> None:
    """Let seats with a result leave by themselves for a while; kill the rest, and whatever they started."""
    until = time.monotonic() + _GOODBYE_S
    for seat in seats:
        if seat.result is not None and all(other.result is not None for other in seats):
            with contextlib.suppress(subprocess.TimeoutExpired):
                seat.process.wait(max(0.0, until - time.monotonic()))
        # The leader of a group may be gone while processes that it started live on.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(seat.process.pid, signal.SIGKILL)
    for seat in seats:
        seat.process.wait()
        os.close(seat.pipe)


def _oom_kills() -> int:
    """Processes that the kernel killed for memory in this control group so far; 0 where it does not tell."""
    try:
        group = Path("/proc/self/cgroup").read_text().strip().rpartition("::")[2]
        events = Path(f"/sys/fs/cgroup{group}/memory.events").read_text()
    except OSError:
        return 0
    counts = dict(line.split() for line in events.splitlines())
    return int(counts.get("oom_kill", 0))
