"""Weights that are drawn in part are of the kind that was asked for."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from escala.plan import quick_draws
from escala.plan.quick_draws import QuickDraws


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick_draws, "BLOCK", 1000)


def test_what_is_large_repeats_a_block_of_its_own_distribution() -> None:
    torch.manual_seed(0)
    with QuickDraws():
        normal = nn.init.normal_(torch.empty(50, 70), mean=3.0, std=0.5)
        uniform = nn.init.uniform_(torch.empty(3100), -2.0, -1.0)
    row = normal.flatten()
    assert torch.equal(row[:1000], row[1000:2000])
    assert torch.equal(row[:500], row[3000:])
    assert len(row[:1000].unique()) > 990
    assert row.mean() == pytest.approx(3.0, abs=0.1)
    assert row.std() == pytest.approx(0.5, abs=0.1)
    assert torch.equal(uniform[:100], uniform[3000:])
    assert -2.0 <= uniform.min() < -1.9
    assert -1.1 < uniform.max() <= -1.0


def test_what_is_small_or_lies_apart_is_drawn_as_ever() -> None:
    torch.manual_seed(1)
    plain = [torch.empty(1000).normal_(), torch.empty(80, 40).t()[::2].uniform_()]
    torch.manual_seed(1)
    with QuickDraws():
        same = [torch.empty(1000).normal_(), torch.empty(80, 40).t()[::2].uniform_()]
    for one, other in zip(plain, same, strict=True):
        assert torch.equal(one, other)


def test_a_network_has_all_its_weights() -> None:
    with QuickDraws():
        made = nn.Sequential(nn.Linear(60, 50), nn.Embedding(77, 33))
    for weight in made.parameters():
        assert weight.isfinite().all()
        assert weight.detach().count_nonzero() == weight.numel()
