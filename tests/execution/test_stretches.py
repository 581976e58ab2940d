"""Steps on stretches of a weight are the step on all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from escala.execution.stepping import Arrived, step_by_part
from escala.execution.stretches import Stretch, divisible

Make = Callable[[Sequence[nn.Parameter]], torch.optim.Optimizer]
STEPS = 4
CUTS = (64, 128, 320)
"""Where a processor's fused kernels take as many elements at once as in one step on all."""
MAKERS: dict[str, Make] = {
    "momentum": lambda weights: torch.optim.SGD(weights, lr=0.1, momentum=0.9, weight_decay=0.01),
    "nesterov, fused": lambda weights: torch.optim.SGD(weights, lr=0.1, momentum=0.9, nesterov=True, fused=True),
    "adam": lambda weights: torch.optim.Adam(weights, lr=0.1, amsgrad=True),
    "adam, foreach": lambda weights: torch.optim.Adam(weights, lr=0.1, foreach=True),
    "adamw, fused": lambda weights: torch.optim.AdamW(weights, lr=0.1, fused=True),
    "two groups": lambda weights: torch.optim.AdamW([{"params": weights[:1], "lr": 0.3}, {"params": weights[1:]}]),
    "without state": lambda weights: torch.optim.SGD(weights, lr=0.1),
    "not by element alone": lambda weights: torch.optim.RMSprop(weights, lr=0.1),
}


def weights() -> list[nn.Parameter]:
    drawn = torch.Generator().manual_seed(0)
    images = torch.rand(6, 5, 4, 3, generator=drawn).to(memory_format=torch.channels_last)
    return [nn.Parameter(images), nn.Parameter(torch.rand(7, generator=drawn))]


def arriving(pairs: Sequence[tuple[nn.Parameter, Tensor]], cuts: Sequence[int]) -> Iterator[Arrived]:
    (large, gradient), *rest = pairs
    yield rest
    ends = [0, *cuts, large.numel()]
    yield from (Stretch(large, gradient, slice(*pair)) for pair in pairwise(ends))


@pytest.mark.parametrize("made", MAKERS)
def test_the_same_bits_and_the_same_state(made: str) -> None:
    whole, parts = weights(), weights()
    one, other = MAKERS[made](whole), MAKERS[made](parts)
    drawn = torch.Generator().manual_seed(1)
    for _ in range(STEPS):
        gradients = [torch.empty_like(weight).copy_(torch.rand(weight.shape, generator=drawn)) for weight in whole]
        for own in (whole, parts):
            for weight, gradient in zip(own, gradients, strict=True):
                weight.grad = gradient.clone()
        one.step()
        pairs = [(weight, weight.grad) for weight in parts if weight.grad is not None]
        step_by_part(other, parts, arriving(pairs, CUTS))
        for weight, same, gradient in zip(whole, parts, gradients, strict=True):
            assert torch.equal(weight, same)
            assert same.grad is not None
            assert torch.equal(same.grad, gradient)
    assert [weight for group in other.param_groups for weight in group["params"]] == parts
    torch.testing.assert_close(one.state_dict(), other.state_dict(), rtol=0, atol=0)


def test_only_what_has_a_state_by_element_is_divided() -> None:
    (large, small), (odd, _) = weights(), weights()
    for made, before, after in (
        ("adam", False, True),
        ("without state", False, False),
        ("not by element alone", False, False),
    ):
        optimizer = MAKERS[made]([large, small])
        assert divisible(optimizer, large) == before
        large.grad, small.grad = torch.ones_like(large), torch.ones_like(small)
        optimizer.step()
        assert divisible(optimizer, large) == after
    # A state in another order of memory than the weight's.
    optimizer = torch.optim.SGD([odd], lr=0.1, momentum=0.9)
    odd.grad = torch.ones_like(odd)
    optimizer.step()
    optimizer.state[odd]["momentum_buffer"] = optimizer.state[odd]["momentum_buffer"].contiguous()
    assert not divisible(optimizer, odd)


def test_an_error_leaves_the_optimiser_as_it_was() -> None:
    own = weights()
    optimizer = torch.optim.SGD(own, lr=0.1, momentum=0.9)
    for weight in own:
        weight.grad = torch.ones_like(weight)
    optimizer.step()
    known = dict(optimizer.state)

    def fail(*_: object) -> None:
        raise RuntimeError("no more")

    optimizer.register_step_pre_hook(fail)
    with pytest.raises(RuntimeError, match="no more"):
        step_by_part(optimizer, own, arriving([(weight, torch.ones_like(weight)) for weight in own][:1], (9,)))
    assert optimizer.param_groups[0]["params"] == own
    assert optimizer.state.keys() == known.keys()


def test_steps_beside_each_other_end_before_what_needs_them() -> None:
    """Lanes that note what is given to them: a device would do it later, and out of turn."""
    noted = list[str]()

    class Noting:
        def __init__(self, name: str) -> None:
            self.name = name

        @contextmanager
        def begin(self) -> Iterator[None]:
            noted.append(f"to {self.name}")
            yield
            noted.append("back")

        def joined(self) -> Callable[[], None]:
            return lambda: noted.append(f"after {self.name}")

    own = weights()
    optimizer = torch.optim.SGD(own, lr=0.1, momentum=0.9)
    pairs = [(weight, torch.ones_like(weight)) for weight in own]
    for weight, gradient in pairs:
        weight.grad = gradient
    optimizer.step()
    optimizer.register_step_pre_hook(lambda *_: noted.append("step"))
    step_by_part(optimizer, own, arriving(pairs, CUTS[:2]), [Noting("a"), Noting("b"), Noting("c")])
    step, all_of_them = ["step", "back"], ["after a", "after b", "after c"]
    small, first, second = (["to a", *step], ["to b", *step], ["to c", *step])
    last, nothing_more = ["to a", *all_of_them, *step], ["to b"]
    # A context that is left by `break` goes on to its end as well.
    assert noted == [*small, *first, *second, *last, *nothing_more, "back", *all_of_them]
    noted.clear()
    # What was never begun is not waited for: a step that is recorded may not wait for one that is not.
    step_by_part(optimizer, own, iter([pairs]), [Noting("a"), Noting("b"), Noting("c")])
    assert noted == ["to a", *step, "to b", "back", "after a", "after b"]
