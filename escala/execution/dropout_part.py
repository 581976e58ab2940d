"""Dropout by row where a layer's inputs lie in parts on several seats: each seat takes its part of the whole mask.

Which inputs are cut, and along which dimension, is seen in the first pass in training: there the whole network, as a
shadow without numbers, is gone through with the same rows, and what its layers take in is compared with what this
seat's layers take in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_map_only

from escala.execution.dropout_attention import RowAttend, RowMultihead
from escala.execution.dropout_layer import Draws, RowDropout
from escala.execution.shadow import shadow
from escala.terms.errors import EscalaError

Shape = tuple[int, ...]


class CutPart:
    """What `Part` says of one layer, seat `number` of `of`; `wholes` is told before the first pass."""

    def __init__(self, name: str, number: int, of: int) -> None:
        self._name, self._number, self._of = name, number, of
        self._along = list[int | None]()
        self.wholes = list[Shape]()

    def whole(self, use: int, shape: Shape) -> Shape:
        """As `Part.whole`. Raises MODEL-RANDOM where it is neither whole nor one of `of` equal parts."""
        if use >= len(self._along):
            self._along.append(self._compare(use, shape))
        along = self._along[use]
        return shape if along is None else (*shape[:along], shape[along] * self._of, *shape[along + 1 :])

    def own(self, use: int, drawn: Tensor) -> Tensor:
        """As `Part.own`."""
        along = self._along[use]
        return drawn if along is None else drawn.chunk(self._of, along)[self._number]

    def _compare(self, use: int, shape: Shape) -> int | None:
        whole = self.wholes[use] if use < len(self.wholes) else ()
        cut = [place for place, (one, other) in enumerate(zip(shape, whole, strict=False)) if one != other]
        if shape == whole:
            return None
        if len(shape) == len(whole) and len(cut) == 1 and shape[cut[0]] * self._of == whole[cut[0]]:
            return cut[0]
        raise _lost(self._name, f"a seat drops parts of {list(shape)} where the whole network has {list(whole)}")


def draw_in_parts(model: nn.Module, number: int, of: int) -> Callable[[nn.Module], None]:
    """Have layers that drop by row take seat `number`'s part of `of`; call it before the network is split.

    The answer is to be called with what is called in training, once the network is split.
    """
    # torch's attention keeps its weights in one parameter that is never split, so it always has all heads.
    plain = {id(layer.mix.dropout) for layer in model.modules() if isinstance(layer, RowMultihead)}
    dropping = [(name, layer) for name, layer in model.named_modules() if isinstance(layer, RowDropout)]
    parts = {name: CutPart(name, number, of) for name, layer in dropping if id(layer) not in plain}
    if not parts:
        return lambda _: None
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    whole = shadow(model, mode).eval()
    draws: dict[str, Draws] = {name: model.get_submodule(name).draws for name in parts}  # type: ignore[misc]

    def watch(called: nn.Module) -> None:
        def first(_: nn.Module, inputs: tuple[Any, ...]) -> None:
            if called.training:
                hook.remove()
                found = _shapes(whole, mode, inputs)
                for name, part in parts.items():
                    part.wholes = found[name]

        hook = called.register_forward_pre_hook(first)
        for name, part in parts.items():
            draws[name].part = part

    return watch


def _shapes(whole: nn.Module, mode: FakeTensorMode, inputs: tuple[Any, ...]) -> dict[str, list[Shape]]:
    """What each layer that drops by row takes in, in one pass; what attention drops from has the shape of weights."""
    found = dict[str, list[Shape]]()
    within = {id(layer.dropout) for layer in whole.modules() if isinstance(layer, RowAttend)}

    def note(name: str) -> Callable[..., None]:
        found[name] = []
        return lambda layer, given: found[name].append(layer.mask_shape(given[0]))

    def note_weights(name: str) -> Callable[..., None]:
        found[name] = []
        return lambda _, given: found[name].append((*given[0].shape[:-1], given[1].shape[-2]))

    for name, layer in whole.named_modules():
        if isinstance(layer, RowAttend):
            layer.register_forward_pre_hook(note_weights(f"{name}.dropout" if name else "dropout"))
        elif isinstance(layer, RowDropout) and id(layer) not in within:
            layer.register_forward_pre_hook(note(name))
    try:
        with mode:
            # Its weights may still lie where the network was made.
            place = next((value.device for value in whole.parameters()), None)
            whole(*tree_map_only(Tensor, lambda value: mode.from_tensor(value).to(place or value.device), inputs))
    except (RuntimeError, ValueError, TypeError, LookupError) as error:
        told = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise _lost("the model", f"its shapes cannot be followed without numbers: {told}") from error
    return found


def _lost(where: str, what: str) -> EscalaError:
    return EscalaError(
        "MODEL-RANDOM",
        where,
        f"{what}, so it is not known which part of the dropped units lies on which seat",
        next_step="set the network's dropout to 0, or use another strategy",
    )
