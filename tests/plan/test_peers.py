"""Peers in an experiment: their labels, their seats, and what is told before anything starts."""

from __future__ import annotations

import msgspec
import pytest

import escala.peers.fit
from escala.plan.expand import trials, workloads_of
from escala.plan.preflight import Facts, Preflight
from escala.plan.read import label_of, parse
from escala.terms.errors import EscalaError
from escala.terms.host import Device, Host
from escala.terms.record import DataUse
from escala.terms.trial import Trial

TEXT = """
[workload]
name = "mlp"
data = "d"
[train]
batch = 64
epochs = 1
[[strategy]]
name = "single"
{rows}
[measure]
repeats = 2
"""
CPU = Host(cpu="c", cores=2, memory_bytes=1, system="s")
CARDS = Host(cpu="c", cores=8, memory_bytes=1, system="s", devices=tuple(Device("cuda", n, "GPU", 1) for n in (0, 1)))


def row(peer: str, more: str = "") -> str:
    return f'[[strategy]]\nname = "single"\npeer = "{peer}"\n{more}\n'


def expanded(rows: str, host: Host = CPU, peers_unfit: dict[str, str] | None = None) -> dict[str, Trial]:
    """The first repeat of each row, by label."""
    asked = parse(TEXT.format(rows=rows), "e.toml").experiment
    parts = {"train": 640, "validation": 0, "test": 1}
    use = DataUse(name="d", origin="real", where="w", digest="x", rows=parts, classes=10)
    facts = tuple(Facts(spec, "d", use, 1, 1, (), peers_unfit=peers_unfit or {}) for spec in workloads_of(asked))
    return {trial.label: trial for trial in reversed(trials(asked, Preflight(host, facts)))}


@pytest.fixture(autouse=True)
def everything_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(escala.peers.fit, "missing", lambda _: ())


def test_a_peer_is_a_row_of_its_own_with_one_seat() -> None:
    found = expanded(row("jax") + row("keras", 'label = "TensorFlow"'))
    assert set(found) == {"single", "jax", "TensorFlow"}
    assert [found[label].peer for label in ("single", "jax", "TensorFlow")] == [None, "jax", "keras"]
    assert found["jax"].unfit is None
    assert found["jax"].seats == found["single"].seats
    assert len({trial.id for trial in found.values()}) == 3


def test_ids_of_escala_s_own_rows_are_those_of_before_there_were_peers() -> None:
    trial = expanded("")["single"]
    assert trial.id == expanded(row("jax"))["single"].id
    assert trial.id == "single-r0-9df18595"


def test_several_devices_are_one_seat() -> None:
    two = expanded(row("keras", "ways = 2"), CARDS)["keras x2"]
    assert two.unfit is None
    assert [seat.devices for seat in two.seats] == [("cuda:0", "cuda:1")]
    assert [seat.rows for seat in two.seats] == [(0, 64)]


@pytest.mark.parametrize(
    ("rows", "host", "told"),
    [
        (row("keras", "ways = 3"), CARDS, "needs 3 cuda devices; this host has 2"),
        (row("jax", "ways = 2"), CARDS, "drives one device"),
        (row("keras", "ways = 2"), CPU, "several CUDA devices"),
        (row("jax", "simulate = true"), CPU, "simulated"),
        (row("plain", 'execution = { precision = "bf16" }'), CPU, "bf16"),
    ],
)
def test_what_does_not_fit_is_a_row_with_a_reason(rows: str, host: Host, told: str) -> None:
    (unfit,) = [trial for trial in expanded(rows, host).values() if trial.unfit is not None]
    assert told in (unfit.unfit or "")


def test_a_network_that_a_peer_cannot_take_is_unfit_there_alone() -> None:
    found = expanded(row("plain") + row("jax"), peers_unfit={"jax": "its layer 3 is a GELU"})
    assert found["plain"].unfit is None
    assert found["jax"].unfit == "its layer 3 is a GELU"


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (row("jaxx"), r"e.toml:12: .*jaxx.*did you mean jax"),
        ('[[strategy]]\nname = "ddp"\npeer = "jax"\n', "the peer jax cannot train as ddp"),
        (row("jax") + row("jax", 'label = "again"'), "runs the same as"),
    ],
)
def test_slips_are_told_with_their_line(rows: str, told: str) -> None:
    with pytest.raises(EscalaError, match=told):
        parse(TEXT.format(rows=rows), "e.toml")


def test_a_trial_without_a_peer_reads_as_before() -> None:
    trial = expanded("")["single"]
    plain = msgspec.to_builtins(trial)
    del plain["peer"]
    assert msgspec.convert(plain, Trial) == trial


def test_labels() -> None:
    asked = parse(TEXT.format(rows=row("jax") + row("keras", "ways = 2")), "e.toml").experiment
    assert [label_of(spec) for spec in asked.strategy] == ["single", "jax", "keras x2"]
