"""Networks as rows of parts, and where they cannot be cut."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import normed
import pytest
import torch
from torch import Tensor, nn

from escala.strategies.parts import (
    Part,
    alone,
    check_buffers,
    check_seats,
    check_whole,
    parts_of,
    tensors_of,
    under_names,
)
from escala.terms.errors import Unfit
from escala.workloads.user import OwnModel


class Own(nn.Module):
    """A network whose way forward is no one else's; `listed`: what its blocks() gives."""

    def __init__(self, *listed: str) -> None:
        super().__init__()
        self.flat, self.wide, self.bent, self.narrow = nn.Flatten(), nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 2)
        self.listed = listed

    def blocks(self) -> list[nn.Module]:
        return [self.get_submodule(name) for name in self.listed]

    def forward(self, rows: Tensor) -> Tensor:
        outputs: Tensor = self.narrow(self.bent(self.wide(self.flat(rows))))
        return outputs


@dataclass(frozen=True)
class Of:
    """A workload of one network."""

    network: nn.Module

    @property
    def work(self) -> OwnModel:
        return OwnModel(lambda: self.network, ())


ROWS = torch.randn(2, 2, 4)
WHOLE = ("flat", "wide", "bent", "narrow")


def test_a_sequence_is_cut_between_its_children_however_often_one_stands_there() -> None:
    bent = nn.ReLU()
    model = nn.Sequential(nn.Linear(3, 3), bent, nn.Linear(3, 3), bent)
    parts = parts_of(Of(model).work, model)
    assert [part.name for part in parts] == ["0", "1", "2", "1"]
    assert [part.module for part in parts] == list(model)
    check_whole(model, parts, torch.randn(2, 3))


def test_a_network_of_its_own_is_cut_as_its_blocks_say() -> None:
    model = Own(*WHOLE).train()
    parts = parts_of(Of(model).work, model)
    assert [part.name for part in parts] == list(WHOLE)
    check_whole(model, parts, ROWS)
    assert all(module.training for module in model.modules())


def test_without_a_list_children_serve_where_they_are_the_way_forward() -> None:
    plain = nn.Module.__new__(type("Plain", (Own,), {"blocks": None}))
    Own.__init__(plain)
    parts = parts_of(Of(plain).work, plain)
    assert len(parts) == 4
    check_whole(plain, parts, ROWS)


@pytest.mark.parametrize(
    ("listed", "why"),
    [
        (("flat", "wide", "bent"), "outside of its blocks it has narrow.weight, narrow.bias"),
        ((), "outside of its blocks it has wide.weight, wide.bias, narrow.weight, narrow.bias"),
        (("flat", "bent", "wide", "narrow"), "they give other outputs"),
        (("flat", "narrow", "bent", "wide"), "one of them does not take what the one before gives"),
    ],
)
def test_blocks_that_are_not_the_way_forward_are_refused_with_what_to_add(listed: tuple[str, ...], why: str) -> None:
    model = Own(*listed)
    torch.manual_seed(0)
    with pytest.raises(Unfit, match=why) as caught:
        check_whole(model, parts_of(Of(model).work, model), ROWS)
    assert "make it an nn.Sequential, or give it (or its Workload) a method blocks()" in str(caught.value)


def test_a_block_that_the_network_does_not_know_is_refused() -> None:
    model = Own(*WHOLE)
    model.blocks = lambda: [nn.Flatten(), model.wide, model.bent, model.narrow]  # type: ignore[method-assign]
    with pytest.raises(Unfit, match="the Flatten in its blocks is none of its own modules"):
        parts_of(Of(model).work, model)


def test_hooks_and_a_forward_of_its_own_make_a_sequence_none() -> None:
    class Doubled(nn.Sequential):
        def forward(self, rows: Tensor) -> Tensor:
            return 2 * super().forward(rows)

    for model in (Doubled(nn.Linear(3, 3)), nn.Sequential(nn.Linear(3, 3))):
        model.register_forward_hook(lambda *_: None)
        model.register_forward_hook(lambda _, __, outputs: outputs + 1)
        with pytest.raises(Unfit, match="they give other outputs"):
            check_whole(model, parts_of(Of(model).work, model), torch.randn(2, 3))


def test_what_a_seat_holds_has_the_names_of_the_network() -> None:
    model = nn.Sequential(OrderedDict(first=normed.rows(), second=normed.plain()))
    parts = parts_of(Of(model).work, model)
    held = under_names(parts[1:])
    assert set(held.state_dict()) == {name for name in model.state_dict() if name.startswith("second.")}
    nested = Own(*WHOLE)
    inner = [part._replace(name=f"deep.er.{part.name}") for part in parts_of(Of(nested).work, nested)]
    assert set(under_names(inner).state_dict()) == {f"deep.er.{name}" for name in nested.state_dict()}


def test_stages_share_weights_but_neither_buffers_nor_draws() -> None:
    for shared, refused, one_process in (
        (nn.Linear(3, 3), False, False),
        (nn.ReLU(), False, False),
        (nn.Dropout(0.1), True, False),
        (nn.BatchNorm1d(3), True, True),
    ):
        model = nn.Sequential(shared, nn.Linear(3, 3), shared)
        parts = parts_of(Of(model).work, model)
        for check, wrong in ((check_seats, refused), (check_buffers, one_process)):
            check([(part, 0) for part in parts])
            if wrong:
                with pytest.raises(Unfit, match=f"one {type(shared).__name__} stands in several stages"):
                    check(list(zip(parts, (0, 0, 1), strict=True)))
            else:
                check(list(zip(parts, (0, 0, 1), strict=True)))


def test_tensors_and_tuples_of_them_go_from_stage_to_stage() -> None:
    one = torch.zeros(1)
    assert tensors_of(one) == (one,)
    assert tensors_of((one, one)) == (one, one)
    for other in ([one], {"a": one}, (one, 1), (), None):
        with pytest.raises(Unfit, match="from stage to stage goes a tensor, or a tuple of tensors"):
            tensors_of(other)


def test_a_copy_goes_to_its_device_at_once_and_shares_what_was_shared() -> None:
    module = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 3))
    module[2].weight = module[0].weight
    module[2].bias.requires_grad_(False)
    part = Part("all", module)
    there = alone(part, torch.device("meta"))
    assert {value.device.type for value in there.state_dict().values()} == {"meta"}
    here = alone(part, torch.device("cpu"))
    assert isinstance(here, nn.Sequential)
    assert here[2].weight is here[0].weight
    assert isinstance(here[0].weight, nn.Parameter)
    assert [weight.requires_grad for weight in here.parameters()] == [True, True, True, True, False]
    with torch.no_grad():
        for value in (*here.parameters(), *here.buffers()):
            value += 1
    for name, value in module.state_dict().items():
        assert torch.equal(here.state_dict()[name], value + 1)
