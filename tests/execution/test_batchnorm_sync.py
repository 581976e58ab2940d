"""Synchronised over seats: what torch's layer computes on all rows at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import norm_seats
import pytest
import torch
from norm_seats import Case
from torch import Tensor, nn

from escala.execution.batchnorm import arrange, combine_running_statistics

Results = dict[int, list[dict[str, dict[str, Tensor]]]]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """What the seats of each number left."""
    made = {}
    for seats in norm_seats.CASES:
        folder = made[seats] = tmp_path_factory.mktemp(f"seats-{seats}")
        script = [sys.executable, norm_seats.__file__]
        seated = [subprocess.Popen([*script, str(rank), str(seats), str(folder)]) for rank in range(seats)]
        assert [process.wait(120) for process in seated] == [0] * seats
    return made


def whole(case: Case) -> dict[str, Tensor]:
    """The same on one process, by torch's own layer."""
    model = case.model()
    left = dict[str, Tensor]()
    for step, (inputs, back) in enumerate(case.steps()):
        rows = inputs.detach().requires_grad_()
        outputs = model(rows)
        outputs.backward(back)
        assert rows.grad is not None
        left |= {f"outputs {step}": outputs.detach(), f"of inputs {step}": rows.grad}
    left |= {f"of {name}": value.grad for name, value in model.named_parameters() if value.grad is not None}
    left |= model.state_dict()
    model.eval()
    left["judged"] = model(case.steps()[0][0]).detach()
    return left


@pytest.mark.parametrize(
    ("seats", "case"), [(seats, case) for seats, cases in norm_seats.CASES.items() for case in cases]
)
def test_all_seats_together_are_one_layer_over_all_rows(seats: int, case: Case, folders: dict[int, Path]) -> None:
    told = [torch.load(folders[seats] / f"{rank}.pt", weights_only=True)[case.name] for rank in range(seats)]
    expected = whole(case)
    assert expected.keys() == told[0].keys()
    exact = case.dtype is torch.float64
    close = 1e-12 * case.away if exact else 1e-5
    # What is stored in bfloat16 has 8 binary digits; statistics and gradients of weights must have more.
    stored = close if exact else 2**-7
    for name, value in expected.items():
        if name.startswith(("outputs", "of inputs")):
            found, within = torch.cat([seat[name] for seat in told]), stored
        elif name.startswith("of "):
            found, within = sum((seat[name] for seat in told), torch.zeros(())), 20 * close
        else:
            found, within = told[0][name], stored if name == "judged" else close
            assert all(torch.equal(seat[name], found) for seat in told), f"seats differ in {name}"
        assert found.dtype == value.dtype, name
        torch.testing.assert_close(
            found, value, rtol=within, atol=within, msg=lambda text, name=name: f"{name}: {text}"
        )


def test_one_row_in_all_is_refused_on_every_seat_as_torch_does(folders: dict[int, Path]) -> None:
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        nn.BatchNorm1d(3)(torch.ones(1, 3))
    assert [(folders[2] / f"{rank}.txt").read_text()[:40] for rank in range(2)] == [
        "Expected more than 1 value per channel w"
    ] * 2


def test_without_peers_torch_does_it() -> None:
    model = nn.Sequential(nn.BatchNorm1d(3))
    layer = model[0]
    assert arrange(model, "sync", 1, 0) == (model, None)
    assert model[0] is layer


def test_seats_that_hold_the_same_statistics_have_nothing_to_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("escala.execution.batchnorm._have_peers", lambda: True)
    model, piece = arrange(nn.Sequential(nn.BatchNorm1d(3)), "sync", 1, 0)
    assert piece is not None

    def fail(_: Tensor) -> Tensor:
        raise AssertionError("nothing is to be added up")

    combine_running_statistics(model, 0.5, fail)
