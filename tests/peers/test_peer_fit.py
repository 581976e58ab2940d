from __future__ import annotations

from typing import Any

import pytest

import escala.peers.fit
from escala.peers import PEERS
from escala.peers.fit import unfit
from escala.terms.experiment import ExecutionSpec, TrainSpec


@pytest.fixture(autouse=True)
def everything_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(escala.peers.fit, "missing", lambda _: ())


def reason(
    name: str = "plain", ways: int = 1, device: str = "cpu", rows: int = 1003, execution: Any = None, **train: Any
) -> str | None:
    recipe = TrainSpec(**{"batch": 50, "epochs": 2, **train})
    return unfit(name, ways, device, recipe, ExecutionSpec(**(execution or {})), rows)


@pytest.mark.parametrize("name", PEERS)
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_every_peer_does_plain_sgd(name: str, device: str) -> None:
    assert reason(name, device=device, momentum=0.9) is None


def test_packages_are_named_with_what_installs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(escala.peers.fit, "missing", lambda name: PEERS[name].packages)
    assert reason("jax") == "needs the package jax: pip install 'escala[peers]'"
    assert reason("keras") == "needs the packages tensorflow and keras: pip install 'escala[peers]'"
    assert reason("plain") is None


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"device": "mps"}, "not on mps"),
        ({"ways": 2}, "drives one device"),
        ({"name": "keras", "ways": 2}, "several CUDA devices"),
        ({"name": "keras", "ways": 2, "device": "cuda"}, "a batch of 3 rows does not divide"),
        ({"name": "keras", "ways": 4, "device": "cuda", "rows": 1000}, "a batch of 50 rows does not divide"),
        ({"epochs": None, "steps": 100}, "train.steps = 100"),
        ({"until": 0.9}, "train.until"),
        ({"schedule": "cosine"}, "one rate"),
        ({"warmup_steps": 10}, "one rate"),
        ({"clip_norm": 1.0}, "clip"),
        ({"name": "keras", "optimizer": "adam"}, "does sgd here, not adam"),
        ({"name": "keras", "weight_decay": 0.1}, "weight decay"),
        ({"name": "jax", "optimizer": "adamw"}, "not adamw"),
        ({"execution": {"precision": "bf16"}}, 'execution.precision = "bf16"'),
        ({"execution": {"microbatch": 8}}, "execution.microbatch = 8"),
    ],
)
def test_what_a_peer_does_not_do_is_named(asked: dict[str, Any], told: str) -> None:
    found = reason(**asked)
    assert found is not None
    assert told in found


def test_what_others_can_do_is_left_to_them() -> None:
    assert reason("lightning", optimizer="adamw", weight_decay=0.1) is None
    assert reason("jax", weight_decay=0.1) is None
    assert reason("keras", ways=2, device="cuda", rows=1000) is None
