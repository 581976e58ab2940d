"""Which layers can be split, and what is said of those that cannot."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.distributed.tensor import Replicate, Shard

from escala.strategies.splits import Split, splits, uneven
from escala.strategies.tensored import styles
from escala.terms.errors import Unfit
from escala.workloads import workload
from escala.workloads.user import OwnModel


def network(plan: dict[str, str], units: dict[str, int] | None = None) -> Callable[[], nn.Module]:
    def made() -> nn.Module:
        layers: Any = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
        layers.tensor_plan = lambda: plan
        layers.tensor_units = lambda: units or {}
        return layers

    return made


def found(factory: Callable[[], nn.Module]) -> tuple[Split, ...]:
    work = OwnModel(factory, ())
    return splits(work, work.model())


def test_a_persons_own_network_says_itself_how_it_is_split() -> None:
    assert found(network({"0": "column", "2": "row"}, {"0": 4, "2": 4})) == (
        Split("0", "column", 8, 4),
        Split("2", "row", 8, 4),
    )


@pytest.mark.parametrize(
    ("plan", "units", "told"),
    [
        ({"9": "column"}, {}, "'9', which is no layer"),
        ({"1": "column"}, {}, "'1', a ReLU; only nn.Linear"),
        ({"0": "columns"}, {}, "'0' by 'columns'"),
        ({"0": "column"}, {"0": 3}, "3 of the 8 units of '0' together"),
        ({"0": "column"}, {"0": 0}, "0 of the 8 units"),
    ],
)
def test_a_plan_that_cannot_be_followed_is_told_with_its_layer(
    plan: dict[str, str], units: dict[str, int], told: str
) -> None:
    with pytest.raises(Unfit, match=re.escape(told)):
        found(network(plan, units))


def test_without_a_plan_the_method_to_add_is_written_out() -> None:
    with pytest.raises(Unfit, match=re.escape('def tensor_plan(self): return {"0": "column", "2": "row"}')):
        found(network({}))
    with pytest.raises(Unfit, match=re.escape("no two of them; use ddp")):
        found(lambda: nn.Sequential(nn.Linear(3, 3)))


def test_a_layer_that_shares_its_weights_is_not_split() -> None:
    def tied() -> nn.Module:
        layers: Any = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
        layers[1].weight = layers[0].weight
        layers.tensor_plan = lambda: {"0": "column", "1": "row"}
        return layers

    with pytest.raises(Unfit, match="'0', whose weights another layer has in common"):
        found(tied)


@given(st.integers(1, 60), st.integers(1, 8), st.integers(1, 9))
def test_layers_are_cut_between_units_or_not_at_all(parts: int, unit: int, ways: int) -> None:
    split = Split("wide", "column", parts * unit, unit)
    reason = uneven([split], ways)
    assert (reason is None) == (parts % ways == 0)
    if reason is not None:
        assert f"wide has {parts * unit} outputs" in reason
        assert f"into {ways} equal parts" in reason


def test_heads_are_counted_and_not_their_columns() -> None:
    work = workload("transformer-lm", {"layers": 1, "width": 48, "heads": 3, "ff": 64, "vocabulary": 50, "length": 8})
    plan = splits(work, work.model())
    assert {split.name: split.parts for split in plan} == {
        "1.attention.query": 3,
        "1.attention.key": 3,
        "1.attention.value": 3,
        "1.attention.out": 3,
        "1.wide": 64,
        "1.narrow": 64,
    }
    reason = uneven(plan, 2)
    assert reason is not None
    assert "1.attention.query has 48 outputs in 3 x 16" in reason
    assert "and 1 layers more" in reason


def test_row_layers_take_in_what_column_layers_before_them_gave() -> None:
    plan = [Split(name, way, 8) for name, way in (("a", "row"), ("b", "column"), ("c", "column"), ("d", "row"))]
    made: Any = styles([*plan, Split("e", "column", 8)])
    assert made["a"].input_layouts == (Replicate(),)
    assert made["b"].output_layouts == made["c"].output_layouts == (Shard(-1),)
    assert made["d"].input_layouts == (Shard(-1),)
    assert made["e"].output_layouts == (Replicate(),)
