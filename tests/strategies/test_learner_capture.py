"""Captured training learns what plain training learns: graphs that hold what they were recorded with would not."""

from __future__ import annotations

import random
from dataclasses import replace

import fake_graph
import pytest
import torch
from arithmetic import patterns
from fake_graph import FakeRecorder
from following import BATCH, PLAIN, ROWS, STEPS, Following, captured
from torch import Tensor, nn

from escala.data.base import Split
from escala.execution import capture
from escala.execution.feeds import unfinished
from escala.execution.order import order_of
from escala.strategies import learner as learners
from escala.strategies.learner import Learner
from escala.terms.errors import EscalaError, Unfit
from escala.terms.experiment import ExecutionSpec, TrainSpec


@pytest.fixture(autouse=True)
def recorder(monkeypatch: pytest.MonkeyPatch) -> FakeRecorder:
    made = FakeRecorder()
    monkeypatch.setattr(learners, "recorder_on", lambda _: made)
    return made


def weights(learner: Learner) -> dict[str, Tensor]:
    found: dict[str, Tensor] = learner.state()["model"]
    return found


RECIPES = {
    "as it is": PLAIN,
    "momentum": TrainSpec(batch=BATCH, momentum=0.9, lr=0.01, weight_decay=0.01),
    "AdamW, warm-up, cosine, clipping": TrainSpec(
        batch=BATCH, optimizer="adamw", lr=0.002, schedule="cosine", warmup_steps=3, clip_norm=0.3, weight_decay=0.1
    ),
    "one cycle": TrainSpec(batch=BATCH, momentum=0.5, schedule="one-cycle"),
}
FP64 = ExecutionSpec("fp64")
EXECUTIONS = {
    "as it is": FP64,
    "resident": ExecutionSpec("fp64", feed="resident"),
    "host": ExecutionSpec("fp64", feed="host", workers=1),
    "microbatches": ExecutionSpec("fp64", microbatch=4),
    "by row": ExecutionSpec("fp64", random="row"),
    "by row, microbatches, resident": ExecutionSpec("fp64", random="row", microbatch=4, feed="resident"),
}


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize(
    ("recipe", "execution"),
    [(recipe, "as it is") for recipe in RECIPES]
    + [("AdamW, warm-up, cosine, clipping", execution) for execution in list(EXECUTIONS)[1:]],
)
def test_the_same_curve(recipe: str, execution: str, steps: int, recorder: FakeRecorder) -> None:
    train, wanted = RECIPES[recipe], EXECUTIONS[execution]
    plain = Following(wanted, train, dropout=0.2)
    expected = plain.losses()
    other = Following(captured(wanted, steps), train, dropout=0.2)
    assert other.losses() == pytest.approx(expected, rel=1e-12)
    for name, value in weights(plain.learner).items():
        torch.testing.assert_close(weights(other.learner)[name], value, rtol=1e-11, atol=1e-13)
    assert recorder.replayed > 0
    assert other.learner.state()["progress"] == plain.learner.state()["progress"]


@pytest.mark.parametrize("network", ["cnn-small", "normed:images", "attending:network"])
def test_the_same_curve_of_networks_of_other_kinds(network: str) -> None:
    options = {} if network == "cnn-small" else {"dropout": 0.1}
    train = TrainSpec(batch=8, lr=0.01)
    split = patterns(35)
    plain, other = (Following(which, train, network, split, **options) for which in (FP64, captured(FP64, 2)))
    assert other.losses() == pytest.approx(plain.losses(), rel=1e-10)
    for name, value in weights(plain.learner).items():
        # Running statistics are the network's, too.
        torch.testing.assert_close(weights(other.learner)[name], value, rtol=1e-9, atol=1e-11)


def test_the_same_curve_where_tokens_count() -> None:
    drawn = torch.Generator().manual_seed(3)
    tokens = torch.randint(0, 20, (22, 9), generator=drawn, dtype=torch.int32)
    split = Split(tokens.numpy(), torch.randint(1, 9, (22, 1), generator=drawn).numpy())
    options = {"vocabulary": 20, "length": 8, "layers": 1, "width": 8, "heads": 2, "ff": 8, "dropout": 0.1}
    train = TrainSpec(batch=4, optimizer="adamw", lr=0.001)
    plain, other = (Following(e, train, "transformer-lm", split, **options) for e in (FP64, captured(FP64, 2)))
    expected = plain.losses()
    assert other.losses() == pytest.approx(expected, rel=1e-11)
    # Two graphs of the whole batch, for two steps and for one, and one of the last.
    assert other.learner.replays is not None
    assert other.learner.replays.graphs == 3


def test_a_state_goes_from_captured_to_plain_and_back_while_graphs_live_on() -> None:
    train = RECIPES["AdamW, warm-up, cosine, clipping"]
    whole = Following(FP64, train, dropout=0.1)
    expected = whole.losses()
    one, two = Following(captured(FP64, 3), train, dropout=0.1), Following(FP64, train, dropout=0.1)
    first = one.losses(1)
    drawn = one.drawn
    state = one.learner.state()
    assert all(isinstance(group["lr"], float) for group in state["optimizer"]["groups"])
    # The graphs of the first go on from another's state, and then from its own again.
    recorded = one.learner.replays.graphs if one.learner.replays else 0
    one.losses(1)
    two.learner.load(state)
    two.epoch = one.epoch = 1
    two.drawn = one.drawn = drawn
    second = two.losses(1)
    assert first + second == pytest.approx(expected, rel=1e-11)
    one.learner.load(state)
    assert one.losses(1) == pytest.approx(second, rel=1e-11)
    assert one.learner.replays is not None
    assert one.learner.replays.graphs == recorded
    assert one.learner.state()["progress"] == two.learner.state()["progress"]


def test_recording_leaves_everything_as_it_was() -> None:
    train = RECIPES["momentum"]
    made = Following(captured(FP64, 2), train, "normed:images", patterns(35), dropout=0.2)
    before, drawn = weights(made.learner), torch.get_rng_state()
    batch = next(iter(made.feed(made.rows, order_of(1, 0, 35), BATCH, made.share)))
    assert made.learner.replays is not None
    made.learner.replays.prepare(batch)
    assert made.learner.replays.graphs == 2
    for name, value in weights(made.learner).items():
        assert torch.equal(value, before[name]), name
    assert torch.equal(drawn, torch.get_rng_state())
    assert made.learner.state()["progress"]["taken"] == 0
    for values in made.learner.state()["optimizer"]["state"].values():
        assert not values["momentum_buffer"].any()


def test_another_plan_lets_go_of_graphs_that_hold_the_old_one() -> None:
    train = RECIPES["one cycle"]
    plain, other = Following(FP64, train), Following(captured(FP64, 2), train)
    assert other.losses(1) == pytest.approx(plain.losses(1), rel=1e-12)
    for one in (plain, other):
        one.learner.plan_for(3 * STEPS)
    assert other.losses(1) == pytest.approx(plain.losses(1), rel=1e-12)


def test_judging_between_replays_changes_nothing() -> None:
    plain, other = Following(FP64, dropout=0.2), Following(captured(FP64, 2), dropout=0.2)
    rows = torch.rand(7, 1, 28, 28, dtype=torch.float64)
    for _ in range(2):
        assert other.losses(1) == pytest.approx(plain.losses(1), rel=1e-12)
        torch.testing.assert_close(other.learner.predict(rows), plain.learner.predict(rows))


class Looking(nn.Module):
    """Asks on the host for what lies on the device."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(784, 10)

    def forward(self, rows: Tensor) -> Tensor:
        outputs: Tensor = self.layer(rows.flatten(1))
        return outputs * 2 if outputs.mean().item() > 0 else outputs


class Tossing(Looking):
    """Leaves a part out by the host's own dice."""

    def forward(self, rows: Tensor) -> Tensor:
        outputs: Tensor = self.layer(rows.flatten(1))
        return outputs * 2 if random.random() > 0.5 else outputs


@pytest.mark.parametrize(
    ("network", "told"),
    [("Looking", r"cannot be captured at test_learner_capture\.py:\d+: .*_local_scalar"), ("Tossing", "on the host")],
)
def test_a_network_that_decides_on_the_host_does_not_fit(
    network: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What refuses to be recorded is torch on a GPU, and its stand-in here.
    monkeypatch.setattr(capture, "_NOT_A_NETWORKS", (*capture._NOT_A_NETWORKS, fake_graph.__file__))
    with pytest.raises(Unfit, match=told):
        Following(captured(ExecutionSpec(), 1), network=f"{__name__}:{network}").losses(1)


def test_dropout_that_does_not_go_by_row_is_found_before_anything_is_recorded(recorder: FakeRecorder) -> None:
    wanted = captured(ExecutionSpec("fp64", random="row"), 1)
    with pytest.raises(EscalaError, match="MODEL-RANDOM"):
        Following(wanted, network=f"{__name__}:Hidden").losses(1)
    assert recorder.recorded == 0


class Hidden(Looking):
    """Drops in a function, which no layer can stand in for."""

    def forward(self, rows: Tensor) -> Tensor:
        outputs: Tensor = self.layer(nn.functional.dropout(rows.flatten(1), 0.5, self.training))
        return outputs


def test_rows_that_are_cut_to_their_lengths_are_gathered_by_the_feed() -> None:
    wanted = captured(ExecutionSpec("fp64", feed="resident"), 1)
    made = Following(wanted)
    ragged = replace(made.rows, lengths=torch.ones(ROWS, dtype=torch.int64))
    _, complete = unfinished(made.feed, wanted, ragged)
    assert complete is ragged.convert
