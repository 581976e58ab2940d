"""Whether a peer can do what a trial asks of it. Plans ask, so nothing here imports torch."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from escala.execution.schedule import is_constant
from escala.peers import PEERS, missing
from escala.terms.experiment import ExecutionSpec, TrainSpec

_DEVICES = ("cpu", "cuda")


def unfit(name: str, ways: int, device: str, train: TrainSpec, execution: ExecutionSpec, rows: int) -> str | None:
    """The first reason why this peer cannot, or None; `rows` is the number of training rows."""
    return next(_reasons(name, ways, device, train, execution, rows), None)


def _reasons(
    name: str, ways: int, device: str, train: TrainSpec, execution: ExecutionSpec, rows: int
) -> Iterator[str]:
    kind = PEERS[name]
    if lacking := missing(name):
        noun = "package" if len(lacking) == 1 else "packages"
        yield f"needs the {noun} {' and '.join(lacking)}: pip install 'escala[peers]'"
    if device not in _DEVICES:
        yield f"the peer {name} runs on {' and '.join(_DEVICES)} here, not on {device}"
    if ways > 1 and not kind.several:
        yield f"the peer {name} drives one device here, not {ways}"
    elif ways > 1 and device != "cuda":
        yield f"the peer {name} drives several CUDA devices from one process; on {device} it has one"
    # It averages the means of its devices, so rows of a smaller share would weigh more.
    elif any(size % ways for size in (train.batch, rows % train.batch)):
        uneven = train.batch if train.batch % ways else rows % train.batch
        yield f"the peer {name} weighs its {ways} devices equally, and a batch of {uneven} rows does not divide"
    yield from _recipe(name, train)
    usual = ExecutionSpec()
    for key in execution.__struct_fields__:
        if (value := getattr(execution, key)) != getattr(usual, key):
            yield f"the peer {name} does not do execution.{key} = {msgspec.json.encode(value).decode()}"


def _recipe(name: str, train: TrainSpec) -> Iterator[str]:
    kind = PEERS[name]
    if train.steps is not None:
        yield f"the peer {name} trains whole epochs, and train.steps = {train.steps} is no number of them"
    if train.until is not None:
        yield f"the peer {name} trains all its epochs, and train.until may end them early"
    if not is_constant(train):
        yield f"the peer {name} trains at one rate here, without schedule and warm-up"
    if train.clip_norm is not None:
        yield f"the peer {name} does not clip gradients here"
    if train.optimizer not in kind.optimizers:
        yield f"the peer {name} does {', '.join(kind.optimizers)} here, not {train.optimizer}"
    if train.weight_decay and not kind.decay:
        yield f"the peer {name} has no weight decay that is part of the gradient, as {train.optimizer}'s is here"
