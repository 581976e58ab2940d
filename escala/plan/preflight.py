"""What must be known before start, found by a child process: the host, the data, the networks.

The campaign's parent never imports torch, and code of the person's own that prints, hangs on or crashes takes only
the child with it.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable
from typing import IO, Any, Literal

import msgspec
from msgspec import Struct, field

from escala.plan.child import python
from escala.plan.traces import Trace, TraceKey
from escala.strategies.splits import Split
from escala.terms.errors import EscalaError
from escala.terms.experiment import WorkloadSpec
from escala.terms.host import Host
from escala.terms.record import DataUse
from escala.terms.trial import Trial

_LAST_WORDS_S = 10.0


class Question(Struct, frozen=True):
    """Workloads to look into; `prepare`: also make their arrays ready for the seats."""

    workloads: tuple[WorkloadSpec, ...] = ()
    prepare: bool = False
    traces: tuple[tuple[TraceKey, ...], ...] = ()
    """What to trace of each of the workloads; none: nothing of any."""
    memory_gib: dict[str, float] = field(default_factory=dict)
    """Memory that devices may use, as in `MeasureSpec`."""


class MetricName(Struct, frozen=True):
    """A metric of the workload, the first of which strategies are compared by, and the values it can have."""

    name: str
    better: Literal["higher", "lower"] = "higher"
    lowest: float | None = None
    highest: float | None = None


class Facts(Struct, frozen=True):
    """What is known of one workload. `data` is the set that was found; `folder` its prepared arrays, if asked for.

    `prepare_s` is how long these took, seconds; `software` what a record says beside its own.
    """

    spec: WorkloadSpec
    data: str
    use: DataUse
    parameters: int
    flops_per_sample: int
    metrics: tuple[MetricName, ...]
    options: dict[str, Any] = field(default_factory=dict)
    """The workload's options; those that go by the memory of a device are replaced by what they came to."""
    folder: str | None = None
    prepare_s: float | None = None
    software: dict[str, str] = field(default_factory=dict)
    unused: tuple[str, ...] = ()
    """Parameters that get no gradient."""
    images: bool = True
    """Whether it takes images into convolutions."""
    drops: bool = False
    """Whether it drops anything in training."""
    packs: bool = False
    """Whether any of that is dropped by torch's own Dropout, which a `dropout_kernel` can stand in for."""
    blocks: int | None = None
    """How many blocks it can be cut into; None: not known."""
    uncut: str | None = None
    """Why it cannot be cut; None: it can."""
    row_bytes: int = 0
    """Of one stored row with its targets."""
    traces: tuple[Trace, ...] = ()
    """What a step holds in memory."""
    process_bytes: int = 0
    """Resident memory of a program with torch and nothing else."""
    segments: int = 0
    """Parts that pass one after the other."""
    splits: tuple[Split, ...] = ()
    """Layers that tensor parallelism would split."""
    splits_unfit: str | None = None
    """Why it can split none."""
    peers_unfit: dict[str, str] = field(default_factory=dict)
    """Why peers cannot train this network, by peer; those that can are not in it."""


class Preflight(Struct, frozen=True):
    """The child's answer; `facts` in the order of the question."""

    host: Host
    facts: tuple[Facts, ...] = ()

    def of(self, spec: WorkloadSpec) -> Facts:
        """The facts of one workload."""
        return next(facts for facts in self.facts if facts.spec == spec)

    def of_trial(self, trial: Trial) -> Facts:
        """The facts of the workload that a trial came from."""
        return next(
            facts
            for facts in self.facts
            if (facts.spec.name, facts.options, facts.data, facts.spec.validation, facts.spec.limit)
            == (trial.workload, trial.options, trial.data, trial.validation, trial.limit)
        )


class Line(Struct, frozen=True):
    """One line of the child's answer: a note on the way, an error, or the end."""

    note: str | None = None
    error: dict[str, Any] | None = None
    answer: Preflight | None = None


def preflight(question: Question, say: Callable[[str], None]) -> Preflight:
    """Ask a child. Raises what the child found wrong, or `MODEL-CRASH` where it ended without a word."""
    reader, writer = os.pipe()
    with tempfile.TemporaryFile() as words:
        with subprocess.Popen(
            python("escala.plan.inspect", str(writer), str(os.getpid())),
            stdin=subprocess.PIPE,
            stdout=words,
            stderr=subprocess.STDOUT,
            pass_fds=(writer,),
            start_new_session=True,
        ) as child:
            os.close(writer)
            try:
                answer = _converse(child, reader, question, say)
                if answer is None:
                    child.wait(_LAST_WORDS_S)
            finally:
                child.kill()
        if answer is not None:
            return answer
        raise _crash(child.returncode, words)


def _crash(code: int, words: IO[bytes]) -> EscalaError:
    words.seek(0)
    printed = words.read().decode(errors="replace").strip().splitlines()
    last = f", and printed last: {printed[-1]}" if printed else ""
    return EscalaError(
        "MODEL-CRASH",
        "preflight",
        f"the process that looks into the workload ended with code {code}{last}",
        next_step="build the model by hand to see why",
    )


def _converse(
    child: subprocess.Popen[bytes], reader: int, question: Question, say: Callable[[str], None]
) -> Preflight | None:
    assert child.stdin is not None
    with child.stdin as stdin:
        stdin.write(msgspec.json.encode(question))
    with os.fdopen(reader, "rb") as lines:
        for text in lines:
            line = msgspec.json.decode(text, type=Line)
            if line.note is not None:
                say(line.note)
            if line.error is not None:
                raise EscalaError.from_dict(line.error)
            if line.answer is not None:
                return line.answer
    return None
