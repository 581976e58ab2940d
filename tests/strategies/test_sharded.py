"""Two seats with a sharded network: what each holds, and that options change how, not what."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import sharded_seat
import torch

from escala.strategies.sharded import clip_over

Told = list[dict[str, np.ndarray]]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    folder = tmp_path_factory.mktemp("sharded")
    words = [[sys.executable, sharded_seat.__file__, str(rank), str(folder)] for rank in range(2)]
    seats = [subprocess.Popen(one) for one in words]
    assert [seat.wait(240) for seat in seats] == [0, 0]
    return [dict(np.load(folder / f"{rank}.npz")) for rank in range(2)]


def curve(told: Told, name: str) -> np.ndarray:
    return told[0][name] + told[1][name]


def test_each_seat_holds_half_of_weights_and_state(told: Told) -> None:
    held = np.stack([seat["held"] for seat in told])
    own, moments, kept, whole = held.T
    assert own.sum() == whole[0]
    assert moments.sum() == 2 * whole[0]
    assert own.max() <= 0.51 * whole[0]
    # Weights, gradients and two moments of 8 bytes; storages may be a little wider, where rows do not divide.
    assert 32 * whole[0] <= kept.sum() <= 1.01 * 32 * whole[0]


def test_a_snapshot_brings_everything_back(told: Told) -> None:
    for seat in told:
        np.testing.assert_array_equal(seat["again"], seat["first"])


@pytest.mark.parametrize("name", ["kept", "ahead", "grouped"])
def test_when_weights_are_gathered_and_freed_changes_no_number(told: Told, name: str) -> None:
    np.testing.assert_array_equal(curve(told, name), curve(told, "plain"))


def test_weights_gathered_in_16_bits_are_those_that_products_are_computed_in(told: Told) -> None:
    np.testing.assert_allclose(curve(told, "narrow"), curve(told, "plain"), rtol=2e-3)


def test_seats_that_pass_more_often_leave_the_others_statistics_alone(told: Told) -> None:
    """As ddp, in which no seat makes a pass for company."""
    np.testing.assert_allclose(curve(told, "norm fsdp"), curve(told, "norm ddp"), rtol=1e-10)
    for seat in told:
        np.testing.assert_allclose(seat["statistics fsdp"], seat["statistics ddp"], rtol=1e-10, atol=1e-12)


def test_all_seats_judge_with_the_same_network(told: Told) -> None:
    assert told[0]["judged"].tolist() == pytest.approx(told[1]["judged"].tolist(), rel=1e-12)


def test_a_network_that_changes_a_parts_output_in_place_is_refused(told: Told) -> None:
    for seat in told:
        assert "MODEL-INPLACE] layer part" in str(seat["refused"])


def test_clipping_goes_by_the_norm_over_all_seats(monkeypatch: pytest.MonkeyPatch) -> None:
    class Shard(torch.Tensor):
        def to_local(self) -> torch.Tensor:
            return self.as_subclass(torch.Tensor)

    def add_up(square: torch.Tensor, *, group: object) -> None:
        # The other seat's gradients have a norm of 4.
        square += 16.0

    monkeypatch.setattr("escala.strategies.sharded.dist.all_reduce", add_up)
    weight = torch.nn.Parameter(torch.zeros(9))
    weight.grad = torch.ones(9).as_subclass(Shard)
    still = torch.nn.Parameter(torch.zeros(2))
    clip_over(None)([weight, still], 1.0)  # type: ignore[arg-type]
    # 3 of a norm of 5 are here.
    assert torch.linalg.vector_norm(weight.grad).item() == pytest.approx(0.6, rel=1e-5)
    clip_over(None)([weight], 100.0)  # type: ignore[arg-type]
    assert torch.linalg.vector_norm(weight.grad).item() == pytest.approx(0.6, rel=1e-5)
