"""Training through `torch.compile`, in its default mode."""

from __future__ import annotations

import importlib
import re
import sys
import traceback
from collections.abc import Callable
from typing import Any, Literal, TypeVar, cast

import torch
from torch import nn

from escala.execution.dropout_layer import Draws
from escala.execution.piece import Piece
from escala.execution.regions import InRegions, cut, is_sequence
from escala.workloads.base import Workload

Result = TypeVar("Result")
How = bool | Literal["tuned"]
"""As `execution.compile`."""

_GRAPHS = 64
"""Most graphs of one piece of code. Torch goes on uncompiled beyond its own limit of 8, which a deep network meets
where something cuts it into pieces."""
_REMEMBERS = "2.13"
"""The release that was seen to take what tuning found from its cache. Before it kernels that come with a cached graph
are tuned anew in every process, unless they are launched the older way (pytorch/pytorch#172819)."""
_MOST_SIGNS = 300
_ADVICE = re.compile(r"Set TORCH")
_PLACE = re.compile(r'File "([^"]+)", line (\d+)')


def compiled(module: nn.Module, wanted: How, workload: Workload, regions: int = 1) -> nn.Module:
    """The module, to be compiled by the first passes through it; itself where that is not `wanted`.

    `tuned`: the compiler goes on from the sizes that it would give its kernels, coordinate by coordinate, as long as
    that makes them faster, until `end_tuning`; what it finds stays in its cache, beside the code.

    Every shape of a batch gets a graph of its own, since there are two at most; rows of many lengths share one.
    Random numbers are those of the network as it is, so that a seed gives the same losses within rounding. Layers
    that are told which rows pass stay as they are: they would be compiled anew for each step.

    With several `regions` a network that is a sequence of children gets as many graphs, one after the other: the
    gradients of one are there as soon as the way back has left it.
    """
    if not wanted:
        return module
    for layer in module.modules():
        if any(isinstance(value, Piece | Draws) for value in vars(layer).values()):
            layer.forward = torch.compiler.disable(layer.forward)
    if regions > 1 and isinstance(module, nn.Sequential) and is_sequence(module):
        return InRegions(module, [_compile(region, wanted, workload) for region in cut(module, regions)])
    return cast(nn.Module, _compile(module, wanted, workload))


def compiled_call(call: Callable[..., Result], wanted: How, workload: Workload) -> Callable[..., Result]:
    """The same for a part of a step that is no network, as its loss."""
    return cast(Callable[..., Result], _compile(call, wanted, workload)) if wanted else call


def _compile(what: Any, wanted: How, workload: Workload) -> Any:
    import torch._dynamo

    torch._dynamo.config.recompile_limit = max(_GRAPHS, torch._dynamo.config.recompile_limit)
    dynamic = False if type(workload).lengths is Workload.lengths else None
    options: dict[str, Any] = {"fallback_random": True}
    if wanted == "tuned":
        _tune(True)
        if torch.__version__ < _REMEMBERS:
            options["use_static_cuda_launcher"] = False
    return torch.compile(what, dynamic=dynamic, options=options)


def end_tuning() -> None:
    """Graphs that are made from now on get the sizes that the compiler gives, whatever was wanted."""
    _tune(False)


def _tune(on: bool) -> None:
    # A flag of the process's compiler, and no option of one call: shapes of one network are to differ in it.
    config: Any = importlib.import_module("torch._inductor.config")
    config.coordinate_descent_tuning = on


def graphs() -> int:
    """How many graphs this process has compiled so far."""
    return int(_counters("stats").get("unique_graphs", 0))


def breaks() -> int:
    """How many places there are where a network's code could not be followed, and so runs between graphs."""
    return len(_counters("graph_break"))


def compile_failure(error: BaseException) -> str | None:
    """Why torch could not compile, with the line of the network where it is known; None for any other error."""
    dynamo = sys.modules.get("torch._dynamo.exc")
    if dynamo is None or not isinstance(error, dynamo.TorchDynamoException):
        return None
    # The rest is the compiler's own view of the code, and advice on its debugging.
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and not _ADVICE.match(line)]
    return f"torch.compile cannot compile this network{_place_of(error)}: {' '.join(lines[:2])[:_MOST_SIGNS]}"


def _place_of(error: BaseException) -> str:
    """The innermost line of the network's own code that torch was following, where it noted that."""
    frames: list[traceback.FrameSummary] = list(getattr(error, "real_stack", None) or [])
    if (innermost := getattr(error, "innermost_user_frame_summary", None)) is not None:
        frames.append(innermost)
    noted = [(frame.filename, str(frame.lineno)) for frame in frames] or _PLACE.findall(str(error))
    own = [(name, line) for name, line in noted if "/torch/" not in name]
    return f" at {own[-1][0].rpartition('/')[2]}:{own[-1][1]}" if own else ""


def _counters(name: str) -> dict[str, int]:
    utils = sys.modules.get("torch._dynamo.utils")
    return {} if utils is None else cast(Callable[[str], dict[str, int]], utils.counters.__getitem__)(name)
