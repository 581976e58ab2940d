from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import nn

from escala.execution.stepping import Stepper
from escala.terms.experiment import Precision, TrainSpec

CPU = torch.device("cpu")


def stepper(
    train: TrainSpec, precision: Precision = "fp32", *, on_device: bool = False
) -> tuple[Stepper, nn.Parameter]:
    weight = nn.Parameter(torch.zeros(4))
    optimizer = torch.optim.SGD([weight], lr=train.lr)
    return Stepper(optimizer, train, precision, CPU, on_device=on_device), weight


def gradient(weight: nn.Parameter, value: float, steps: Stepper) -> None:
    weight.grad = torch.full_like(weight, value) * steps.scaled(torch.ones(()))


def test_a_gradient_is_clipped_by_its_whole_norm() -> None:
    steps, weight = stepper(TrainSpec(lr=1.0, clip_norm=1.0))
    gradient(weight, 3.0, steps)
    steps.take()
    assert torch.linalg.vector_norm(weight.detach()) == pytest.approx(1.0, rel=1e-5)


def test_clipping_may_go_by_the_norm_of_more_than_what_a_seat_holds() -> None:
    given = list[tuple[int, float]]()

    def clip(parameters: Sequence[nn.Parameter], most: float) -> None:
        given.append((len(parameters), most))
        torch.nn.utils.clip_grads_with_norm_(parameters, most, torch.tensor(8.0))

    weight = nn.Parameter(torch.zeros(4))
    train = TrainSpec(lr=1.0, clip_norm=1.0)
    steps = Stepper(torch.optim.SGD([weight], lr=1.0), train, "fp32", CPU, clip)
    gradient(weight, 3.0, steps)
    steps.take()
    assert given == [(1, 1.0)]
    # Two more seats like this one: 6 of a norm of 8 are here.
    assert weight.detach().tolist() == pytest.approx([-3 / 8] * 4, rel=1e-5)


def test_a_schedule_moves_with_every_step_taken() -> None:
    steps, weight = stepper(TrainSpec(lr=1.0, warmup_steps=4))
    with pytest.raises(RuntimeError, match="number of steps"):
        steps.take()
    steps.plan_for(4)
    seen = []
    for _ in range(4):
        before = weight.detach().clone()
        gradient(weight, 1.0, steps)
        steps.take()
        seen.append((before - weight.detach())[0].item())
    assert seen == pytest.approx([0.25, 0.5, 0.75, 1.0])


def test_a_schedule_on_the_device_is_the_hosts_and_keeps_its_place_in_memory() -> None:
    train = TrainSpec(lr=1.0, warmup_steps=2, schedule="cosine")
    host, _ = stepper(train)
    device, weight = stepper(train, on_device=True)
    with pytest.raises(RuntimeError, match="number of steps"):
        device.take()
    where = [device.optimizer.param_groups[0]["lr"].data_ptr()]
    # Beyond the plan the last rate holds, as when warming up on a short training.
    for steps in (host, device):
        steps.plan_for(5)
    rates = []
    for _ in range(7):
        gradient(weight, 1.0, device)
        device.take()
        host.take()
        rates.append((device.optimizer.param_groups[0]["lr"].item(), host.optimizer.param_groups[0]["lr"]))
    assert [one for one, _ in rates] == [two for _, two in rates]
    assert len({one for one, _ in rates}) == 4, "the peak is the rate of two steps"
    assert (device.taken, int(device.made)) == (7, 7)
    device.resume({"taken": 2, "skipped": 0, "scaler": {}})
    assert int(device.made) == 2
    gradient(weight, 1.0, device)
    device.take()
    where.append(device.optimizer.param_groups[0]["lr"].data_ptr())
    assert device.optimizer.param_groups[0]["lr"].item() == rates[2][0]
    assert len(set(where)) == 1


def test_one_rate_for_all_steps_stays_a_number() -> None:
    steps, _ = stepper(TrainSpec(lr=0.5), on_device=True)
    assert steps.optimizer.param_groups[0]["lr"] == 0.5
    steps.went(3)
    assert (steps.taken, steps.progress()["taken"]) == (3, 3)


def test_a_skipped_step_moves_neither_weights_nor_schedule_nor_count() -> None:
    steps, weight = stepper(TrainSpec(lr=1.0, warmup_steps=4), "fp16")
    steps.plan_for(4)
    gradient(weight, 1.0, steps)
    steps.take()
    after_one = weight.detach().clone()
    assert (steps.taken, steps.skipped) == (1, 0)
    assert after_one[0].item() == pytest.approx(-0.25)
    gradient(weight, float("inf"), steps)
    steps.take()
    assert (steps.taken, steps.skipped) == (1, 1)
    assert torch.equal(weight.detach(), after_one)
    gradient(weight, 1.0, steps)
    steps.take()
    # The second step of the schedule, although it is the third that was tried.
    assert (after_one - weight.detach())[0].item() == pytest.approx(0.5)


def test_progress_goes_over_to_another_stepper() -> None:
    steps, weight = stepper(TrainSpec(lr=1.0, warmup_steps=4), "fp16")
    steps.plan_for(4)
    gradient(weight, float("nan"), steps)
    steps.take()
    other, _ = stepper(TrainSpec(lr=1.0, warmup_steps=4), "fp16")
    other.resume(steps.progress())
    assert other.progress() == steps.progress()
    assert other.scaled(torch.ones(())).item() == steps.scaled(torch.ones(())).item() == 2.0**15
    plain, _ = stepper(TrainSpec())
    assert plain.scaled(torch.ones(())).item() == 1.0
    plain.resume(steps.progress())
    assert (plain.taken, plain.skipped) == (0, 1)
