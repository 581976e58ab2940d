"""What an exception in a seat means for its trial."""

from __future__ import annotations

import errno
from collections.abc import Sequence

import torch

from escala.execution.compiled import compile_failure
from escala.meters.memory import MemoryMeter
from escala.run.assignment import Failure
from escala.terms.errors import EscalaError, Interrupted, Unfit
from escala.workloads.user import own_frames

_MEMORY_WORDS = ("can't allocate memory", "cannot allocate memory", "out of memory", "std::bad_alloc")
_PEER_WORDS = (
    "connection closed by peer",
    "connection reset by peer",
    "broken pipe",
    "socket closed",
    "remote process exited",
    "nccl",
    "gloo",
)


def failure_of(error: BaseException, devices: Sequence[str]) -> Failure:
    """Outcome and reason; with the peak where memory ran out, and marked where it only echoes a peer's end."""
    if _is_out_of_memory(error):
        return Failure("out of memory", _first_line(error), readings=MemoryMeter(devices).stop())
    if isinstance(error, Unfit):
        return Failure("unfit", str(error))
    if (reason := compile_failure(error)) is not None:
        return Failure("unfit", reason)
    if isinstance(error, EscalaError):
        return Failure("failed", str(error).removeprefix("escala: "), error=error.to_dict())
    if isinstance(error, Interrupted):
        return Failure("interrupted", "asked to stop")
    if isinstance(error, SystemExit):
        return Failure("failed", f"ended early: the code called exit({error.code})")
    return Failure("failed", own_frames(error), follow_up=_echoes_a_peer(error))


def _is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    return isinstance(error, RuntimeError) and any(word in str(error).lower() for word in _MEMORY_WORDS)


def _echoes_a_peer(error: BaseException) -> bool:
    kinds = (torch.distributed.DistError,) if torch.distributed.is_available() else ()
    return isinstance(error, kinds) or (
        isinstance(error, RuntimeError) and any(word in str(error).lower() for word in _PEER_WORDS)
    )


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
