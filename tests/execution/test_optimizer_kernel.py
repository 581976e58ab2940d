from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch import nn

from escala.execution.optimizer_kernel import recordable, with_kernel
from escala.strategies.named_state import load_named_state, named_state
from escala.terms.errors import Unfit
from escala.terms.experiment import Optimizer, OptimizerKernel, TrainSpec
from escala.workloads import workload


def made(optimizer: Optimizer, kernel: OptimizerKernel) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = nn.Linear(3, 2, dtype=torch.float64)
    recipe = TrainSpec(optimizer=optimizer, lr=0.1, momentum=0.9, weight_decay=0.01)
    return model, with_kernel(workload("mlp", {}).optimizer(model.parameters(), recipe), kernel)


def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    model(torch.linspace(0, 1, 12, dtype=torch.float64).view(4, 3)).square().sum().backward()
    optimizer.step()


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adamw"])
@pytest.mark.parametrize("kernel", ["foreach", "fused"])
def test_every_kernel_takes_the_same_steps(optimizer: Optimizer, kernel: OptimizerKernel) -> None:
    plain, usual = made(optimizer, "default")
    model, chosen = made(optimizer, kernel)
    assert [group[kernel] for group in chosen.param_groups] == [True]
    assert usual.param_groups[0][kernel] is None
    for _ in range(5):
        step(plain, usual)
        step(model, chosen)
    torch.testing.assert_close(model.weight, plain.weight, rtol=1e-12, atol=1e-12)


def test_default_is_what_the_workload_made() -> None:
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    assert with_kernel(optimizer, "default") is optimizer


def test_groups_keep_their_own_settings() -> None:
    first, second = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))
    groups = [{"params": [first], "lr": 0.3}, {"params": [second], "weight_decay": 0.5}]
    chosen = with_kernel(torch.optim.AdamW(groups, lr=0.1), "foreach")
    assert [(group["lr"], group["weight_decay"]) for group in chosen.param_groups] == [(0.3, 0.01), (0.1, 0.5)]
    assert chosen.param_groups[1]["params"] == [second]


def test_what_has_no_such_kernel_does_not_fit() -> None:
    class Own(torch.optim.SGD):
        pass

    weight = nn.Parameter(torch.zeros(1))
    with pytest.raises(Unfit, match="Own has no fused kernel"):
        with_kernel(Own([weight], lr=0.1), "fused")
    with pytest.raises(Unfit, match="Adadelta has no fused kernel"):
        with_kernel(torch.optim.Adadelta([weight]), "fused")
    with pytest.raises(Unfit, match=r"SGD has no fused kernel here: .*floating"):
        with_kernel(torch.optim.SGD([nn.Parameter(torch.zeros(1, dtype=torch.complex64))], lr=0.1), "fused")


@pytest.mark.parametrize("kernels", [("default", "fused"), ("fused", "default"), ("foreach", "fused")])
def test_a_checkpoint_does_not_bring_its_kernel_along(kernels: tuple[OptimizerKernel, OptimizerKernel]) -> None:
    left, other = (made("adamw", kernel) for kernel in kernels)
    step(*left)
    own = {key: other[1].param_groups[0][key] for key in ("foreach", "fused")}
    other[0].load_state_dict(left[0].state_dict())
    load_named_state(other[1], other[0], deepcopy(named_state(left[1], left[0])))
    assert {key: other[1].param_groups[0][key] for key in ("foreach", "fused")} == own
    step(*left)
    step(*other)
    torch.testing.assert_close(other[0].weight, left[0].weight, rtol=1e-12, atol=1e-12)


def test_recorded_steps_are_fused_unless_another_kernel_is_named() -> None:
    for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        weight = nn.Parameter(torch.zeros(2))
        (group,) = recordable(kind([weight], lr=0.1), "default", moving=True).param_groups
        assert group["fused"] is True
        # Torch has that word for accelerators alone.
        assert group.get("capturable", False) is False
        (group,) = recordable(kind([weight], lr=0.1), "foreach", moving=False).param_groups
        assert group["foreach"] is True


def test_optimisers_that_read_on_the_host_or_begin_otherwise_do_not_fit() -> None:
    weight = nn.Parameter(torch.zeros(2))
    with pytest.raises(Unfit, match="not that of NAdam"):
        recordable(torch.optim.NAdam([weight]), "default", moving=False)
    with pytest.raises(Unfit, match="dampening"):
        recordable(torch.optim.SGD([weight], lr=0.1, momentum=0.9, dampening=0.1), "default", moving=False)
    with pytest.raises(Unfit, match="SGD's foreach kernel reads it on the host"):
        recordable(torch.optim.SGD([weight], lr=0.1), "foreach", moving=True)
