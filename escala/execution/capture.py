"""Recording work on a device as a graph that is replayed: the one place that touches CUDA graphs."""

from __future__ import annotations

import gc
import os
import random
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

import torch

from escala.terms.errors import Unfit

_ESCALA = str(Path(__file__).parents[1])
_NOT_A_NETWORKS = (str(Path(torch.__file__).parent), _ESCALA, "<")
_MOST_SIGNS = 200
_ASYNC_ERRORS = "TORCH_NCCL_ASYNC_ERROR_HANDLING"


class Recorder(Protocol):
    """Records work that is queued on a device."""

    def aside(self) -> AbstractContextManager[object]:
        """Where training work that is not replayed must run, and wrappers be made, so that any can be recorded."""

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        """Runs `work` on the host alone; what it would have queued is queued by each call of what is returned.

        That reads and writes the storages that `work` saw. Raises what `work` raises, RuntimeError for work that
        cannot be recorded.
        """


class CudaRecorder:
    """Records CUDA graphs; all of them share one pool of memory, since they are never replayed at the same time."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        # Autograd goes back on the streams of the way there, and DDP's hooks on the one it was made on: one for all.
        self._side = torch.cuda.Stream(device)
        self._pool = torch.cuda.graph_pool_handle()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """As `Recorder.aside`."""
        current = torch.cuda.current_stream(self._device)
        self._side.wait_stream(current)
        with torch.cuda.stream(self._side), _best_convolutions():
            yield
        current.wait_stream(self._side)

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        """As `Recorder.record`."""
        graph = torch.cuda.CUDAGraph()
        # Dead graphs and events of earlier work must not be destroyed in the midst of the recording.
        gc.collect()
        gc.disable()
        try:
            # Other threads, such as a feed that pins memory or NCCL's watchdog, go on as they like.
            with (
                _best_convolutions(),
                torch.cuda.graph(graph, pool=self._pool, stream=self._side, capture_error_mode="thread_local"),
            ):
                work()
        finally:
            gc.enable()
        torch.cuda.synchronize(self._device)
        return graph.replay


def recorder_on(device: torch.device) -> Recorder:
    """The recorder of a device. Raises `Unfit` where it has none."""
    if device.type != "cuda":
        raise Unfit(f"capture records CUDA graphs, and {device.type} has none")
    return CudaRecorder(device)


def leave_errors_to_the_parent() -> None:
    """Before NCCL starts: its watchdog would ask after events of a recording, which spoils it.

    A seat that hangs is found and ended by the campaign's parent in any case.
    """
    os.environ[_ASYNC_ERRORS] = "0"


def recorded(recorder: Recorder, work: Callable[[], None]) -> Callable[[], None]:
    """The graph of `work`. Raises `Unfit` with the line of the network where it cannot be recorded."""
    drawn = _host_draws()
    try:
        replay = recorder.record(work)
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        raise Unfit(f"this network's step cannot be captured{_place_of(error)}: {_told(error)}") from error
    if drawn != _host_draws():
        raise Unfit("this network draws random numbers on the host, which a captured step would draw only once")
    return replay


def _host_draws() -> tuple[object, ...]:
    """Where the host's generators stand that networks draw from."""
    return (torch.get_rng_state().tolist(), random.getstate())


@contextmanager
def _best_convolutions() -> Iterator[None]:
    """Let cuDNN try its algorithms: shapes are few, and a graph keeps what was chosen for it."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = True
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


def _first(error: BaseException) -> BaseException:
    """What went wrong first: ending a spoilt recording raises an error of its own."""
    while "captur" in str(error).lower() and error.__context__ is not None:
        error = error.__context__
    return error


def _told(error: BaseException) -> str:
    lines = str(_first(error)).strip().splitlines() or [type(_first(error)).__name__]
    return lines[0][:_MOST_SIGNS]


def _place_of(error: BaseException) -> str:
    """The innermost line that is neither torch's nor escala's; else the one of a workload that ships with escala."""
    frames = traceback.extract_tb(_first(error).__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(_NOT_A_NETWORKS)]
    shipped = [frame for frame in frames if frame.filename.startswith(os.path.join(_ESCALA, "workloads"))]
    found = (own or shipped)[-1:]
    return "".join(f" at {os.path.basename(frame.filename)}:{frame.lineno}" for frame in found)
