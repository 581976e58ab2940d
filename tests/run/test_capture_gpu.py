"""Captured training by real CUDA graphs; several seats and more recipes are in the same-arithmetic test."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny
import torch
from arithmetic import patterns
from following import BATCH, PLAIN, Following, captured
from torch import Tensor, nn

from escala.execution.compiled import How
from escala.execution.order import order_of
from escala.terms.errors import Unfit
from escala.terms.experiment import ExecutionSpec, TrainSpec

pytestmark = pytest.mark.gpu

ADAMW = TrainSpec(batch=BATCH, optimizer="adamw", lr=0.002, schedule="cosine", warmup_steps=3, clip_norm=0.3)
MOMENTUM = TrainSpec(batch=BATCH, momentum=0.9, lr=0.01, schedule="one-cycle")


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("train", [PLAIN, MOMENTUM, ADAMW])
@pytest.mark.parametrize("feed", ["memory", "host", "resident"])
def test_the_same_curve_with_the_devices_own_dropout(train: TrainSpec, feed: str, steps: int) -> None:
    execution = ExecutionSpec("fp64", feed=feed, workers=1 if feed == "host" else 0)  # type: ignore[arg-type]
    plain = Following(execution, train, device="cuda:0", dropout=0.2)
    other = Following(captured(execution, steps), train, device="cuda:0", dropout=0.2)
    # Rates of schedules lie in float32, as CUDA's kernels take them.
    assert other.losses() == pytest.approx(plain.losses(), rel=1e-5)
    assert other.losses() == pytest.approx(plain.losses(), rel=1e-5)


@pytest.mark.parametrize("network", ["cnn-small", "normed:images", "attending:network"])
@pytest.mark.parametrize("compiled", [False, True, "tuned"])
def test_the_same_curve_of_other_networks_compiled_or_not(network: str, compiled: How) -> None:
    options = {} if network == "cnn-small" else {"dropout": 0.1}
    # Compiled or not in both: compiled attention draws its dropout by other numbers.
    execution = ExecutionSpec(feed="resident", compile=compiled)
    train, split = TrainSpec(batch=8, lr=0.005), patterns(35)
    plain, other = (
        Following(which, train, network, split, "cuda:0", **options) for which in (execution, captured(execution, 2))
    )
    assert other.losses() == pytest.approx(plain.losses(), rel=1e-4)


def test_a_narrow_format_learns_too() -> None:
    execution = ExecutionSpec("bf16", feed="resident", memory_format="channels_last", optimizer_kernel="fused")
    train, split = TrainSpec(batch=8, lr=0.005), patterns(35)
    plain, other = (
        Following(which, train, "normed:images", split, "cuda:0") for which in (execution, captured(execution, 4))
    )
    assert other.losses() == pytest.approx(plain.losses(), rel=2e-2)


def test_recording_leaves_weights_optimiser_and_generators_as_they_were() -> None:
    made = Following(captured(ExecutionSpec(), 2), MOMENTUM, "normed:images", patterns(35), "cuda:0", dropout=0.2)
    before, drawn = made.learner.state()["model"], torch.cuda.get_rng_state()
    batch = next(iter(made.feed(made.rows, order_of(1, 0, 35), BATCH, made.share)))
    assert made.learner.replays is not None
    made.learner.replays.prepare(batch)
    for name, value in made.learner.state()["model"].items():
        assert torch.equal(value, before[name]), name
    assert torch.equal(drawn, torch.cuda.get_rng_state())
    assert made.learner.state()["progress"]["taken"] == 0


def test_a_state_goes_from_captured_to_plain_and_back() -> None:
    one, two = (
        Following(e, ADAMW, device="cuda:0", dropout=0.1)
        for e in (captured(ExecutionSpec("fp64"), 3), ExecutionSpec("fp64"))
    )
    one.losses(1)
    state, drawn = one.learner.state(), one.drawn
    second = one.losses(1)
    for other in (two, one):
        other.learner.load(state)
        other.epoch, other.drawn = 1, drawn
        assert other.losses(1) == pytest.approx(second, rel=1e-5)


class Looking(nn.Module):
    """Asks on the host for what lies on the device."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(784, 10)

    def forward(self, rows: Tensor) -> Tensor:
        outputs: Tensor = self.layer(rows.flatten(1))
        return outputs * 2 if outputs.mean().item() > 0 else outputs


def test_a_network_that_cannot_be_captured_does_not_fit_and_its_line_is_named() -> None:
    line = Looking.forward.__code__.co_firstlineno + 2
    with pytest.raises(Unfit, match=rf"cannot be captured at test_capture_gpu\.py:{line}: .*captur"):
        Following(captured(ExecutionSpec(), 1), network=f"{__name__}:Looking", device="cuda:0").losses(1)


EXPERIMENT = """
[workload]
name = "mlp"
data = "{images}"
options = {{ dropout = 0.1 }}
[train]
batch = 64
epochs = 2
[execution]
feed = "resident"
{seats}
[measure]
repeats = 1
cooldown_s = 0
idle_s = 0
"""
ROW = """
[[strategy]]
name = "{name}"
ways = {ways}
label = "{name} {capture}"
execution = {{ capture = {capture}{more} }}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "ways", "more"),
    [
        ("single", 1, ""),
        ("ddp", 1, ""),
        ("ddp", 2, ""),
        ("ddp", 2, ', overlap = "optimizer"'),
        ("ddp", 2, ', transport = "shm"'),
        ("ddp", 2, ', transport = "shm", overlap = "optimizer"'),
        ("ddp", 2, ', transport = "shm", compile = true'),
    ],
)
def test_a_campaign_of_captured_and_plain_rows(
    name: str, ways: int, more: str, tmp_path: Path, images: Path, env: dict[str, str]
) -> None:
    if torch.cuda.device_count() < ways:
        pytest.skip(f"needs {ways} CUDA devices")
    rows = "".join(ROW.format(name=name, ways=ways, capture=capture, more=more) for capture in ("false", "true"))
    (tmp_path / "e.toml").write_text(EXPERIMENT.format(images=images, seats=rows))
    ended = tiny.escala(["run", str(tmp_path / "e.toml"), "--out", str(tmp_path / "c")], env)
    assert ended.returncode == 0, ended.stderr
    plain, other = sorted(tiny.records(tmp_path / "c"), key=lambda record: record["trial"]["label"])
    assert (plain["outcome"], other["outcome"]) == ("done", "done"), other.get("reason")
    assert other["losses"] == pytest.approx(plain["losses"], rel=1e-4)
    assert "graphs" in other["software"]["capture"]
    assert "captured while training" not in other["software"]
