"""A person's own workload, named `module:factory`."""

from __future__ import annotations

import os
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from escala.terms.errors import EscalaError
from escala.terms.modules import own_module
from escala.workloads.base import Workload, pixels


@dataclass(frozen=True)
class OwnModel(Workload):
    """A classifier around a factory that returns a plain `nn.Module`: logits [n, classes], cross-entropy.

    Stored uint8 rows become floats in -1..1 and get a channel dimension; other types are only converted.
    """

    factory: Any
    options: tuple[tuple[str, Any], ...]
    data: ClassVar[tuple[str, ...]] = ("fashion-mnist", "mnist", "synthetic")

    def model(self) -> nn.Module:
        made = call(self.factory, dict(self.options), where=_name_of(self.factory), kinds=(nn.Module,))
        return cast(nn.Module, made)

    def blocks(self, model: nn.Module) -> tuple[nn.Module, ...]:
        """What the network's own method `blocks()` gives, if it has one, or else its children."""
        named = getattr(model, "blocks", None)
        return tuple(named() if callable(named) and not isinstance(named, nn.Module) else model.children())

    def inputs(self, raw: Tensor, dtype: torch.dtype) -> Tensor:
        return pixels(raw, dtype) if raw.dtype is torch.uint8 else raw.to(dtype)


def own(name: str, options: Mapping[str, Any]) -> Workload:
    """The workload that `module:factory` makes.

    The factory returns a `Workload`, or an `nn.Module` to be trained as a classifier. Raises `MODEL-IMPORT`,
    `MODEL-FACTORY` or `MODEL-KIND`; only frames of the person's own code are shown.
    """
    module_name, _, attribute = name.partition(":")
    try:
        module = own_module(module_name)
    except Exception as error:
        raise EscalaError(
            "MODEL-IMPORT",
            name,
            f"importing {module_name} failed: {own_frames(error)}",
            next_step="run from the folder that holds the module, or put it on PYTHONPATH",
        ) from error
    factory = getattr(module, attribute, None)
    if not callable(factory):
        raise EscalaError(
            "MODEL-FACTORY",
            name,
            f"{module_name} has no callable named {attribute!r}",
            expected="a function that returns an nn.Module or a Workload",
            next_step="name it as module:factory",
        )
    made = call(factory, dict(options), where=name, kinds=(Workload, nn.Module))
    return made if isinstance(made, Workload) else OwnModel(factory, tuple(options.items()))


def call(factory: Any, options: dict[str, Any], *, where: str, kinds: tuple[type, ...]) -> Any:
    """The factory's result, checked; the working directory is put back if the factory changed it."""
    folder = os.getcwd()
    try:
        made = factory(**options)
    except Exception as error:
        raise EscalaError(
            "MODEL-FACTORY",
            where,
            f"the factory raised {own_frames(error)}",
            next_step="call it by hand with the same options",
        ) from error
    finally:
        os.chdir(folder)
    if not isinstance(made, kinds):
        raise EscalaError(
            "MODEL-KIND",
            where,
            f"the factory returned {type(made).__name__}",
            expected=" or ".join(kind.__name__ for kind in kinds),
        )
    return made


def own_frames(error: BaseException) -> str:
    """The exception and where it arose, without frames of escala or of the import machinery."""
    frames = [
        f"{os.path.basename(frame.filename)}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if f"{os.sep}escala{os.sep}" not in frame.filename and "importlib" not in frame.filename
    ]
    place = f" at {' -> '.join(frames)}" if frames else ""
    return f"{type(error).__name__}: {error}{place}"


def _name_of(factory: Any) -> str:
    return f"{getattr(factory, '__module__', '?')}:{getattr(factory, '__qualname__', '?')}"
