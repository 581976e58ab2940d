"""What parts cost where a network is to be cut: the loss belongs to the last of them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from escala.strategies import weigh
from escala.strategies.parts import Part
from escala.strategies.weigh import flops_of, seconds_of

LAUNCH_S = 0.5


class Clock:
    """Seconds that pass as parts work, and a while at every wait for the device."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def wait(self) -> None:
        self.now += LAUNCH_S


class Slow(nn.Module):
    def __init__(self, clock: Clock, seconds: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
        self._clock, self._seconds = [clock], seconds

    def __deepcopy__(self, _: object) -> Slow:
        return Slow(self._clock[0], self._seconds)

    def forward(self, inputs: Tensor) -> Tensor:
        self._clock[0].now += self._seconds
        return inputs * self.weight


def test_seconds_are_of_a_pass_with_the_loss_in_the_last_part(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(weigh, "time", clock)
    monkeypatch.setattr(weigh, "synchroniser", lambda _: clock.wait)

    def loss(outputs: Tensor) -> Tensor:
        clock.now += 4.0
        return outputs.sum()

    parts = [Part(str(seconds), Slow(clock, seconds)) for seconds in (1.0, 2.0)]
    found = seconds_of(parts, torch.rand(3, 4), "fp32", loss)
    # Of one pass alone the wait for the device would be half of the first part's time.
    assert found == pytest.approx([1.0, 6.0], rel=0.15)
    assert found[0] < 1.0 + LAUNCH_S / 2


def test_operations_of_the_loss_are_the_last_parts() -> None:
    parts = [Part("0", nn.Linear(4, 4, bias=False)), Part("1", nn.Linear(4, 4, bias=False))]
    inputs, more = torch.rand(3, 4), torch.rand(4, 50)
    plain = flops_of(parts, inputs, "fp32", torch.sum)
    heavy = flops_of(parts, inputs, "fp32", lambda outputs: (outputs @ more).sum())
    assert heavy[0] == plain[0]
    # Forward, and back to the outputs.
    assert heavy[1] == plain[1] + 2 * (2 * 3 * 4 * 50)
