from __future__ import annotations

import math

import pytest
import texts
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from workload_cases import CASES, NAMES, side, small

from escala.data.base import Description
from escala.plan import model_facts as counting
from escala.plan.model_facts import model_facts, model_of
from escala.plan.stored_rows import stored
from escala.terms.errors import EscalaError
from escala.terms.experiment import TrainSpec
from escala.workloads import WORKLOADS, workload
from escala.workloads.base import pixels


def test_every_workload_is_tested() -> None:
    assert set(CASES) == set(WORKLOADS)


def test_every_metric_has_a_name_in_every_language() -> None:
    assert {metric.name for kind in WORKLOADS.values() for metric in kind.metrics} == set(texts.METRICS)


@pytest.mark.parametrize("name", NAMES)
def test_every_workload_has_its_published_number_of_parameters(name: str) -> None:
    # Sizes without numbers in them.
    with torch.device("meta"):
        model = workload(name, {}).model()
    assert sum(parameter.numel() for parameter in model.parameters()) == CASES[name].parameters


@pytest.mark.parametrize("name", NAMES)
def test_every_workload_has_its_facts_before_a_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are found on rows of zeros, which for text are nothing but padding."""
    work = small(name)
    raw, _ = CASES[name].rows(1)
    kind = work.form().kind
    dtype = str(raw.dtype).removeprefix("torch.")
    data = Description("made up", "generated", "", "", tuple(raw.shape[1:]), dtype, classes=0, kind=kind)
    facts = model_facts(work, data, model_of(work))
    parameters, operations = facts.parameters, facts.flops_per_sample
    assert not facts.unused
    assert (facts.blocks, facts.uncut) == (len(work.blocks(work.model())), None)
    assert facts.images == (name.startswith(("cnn", "resnet")))
    plain = [layer for layer in work.model().modules() if type(layer) is torch.nn.Dropout and layer.p > 0]
    assert facts.packs == bool(plain)
    assert facts.drops == (getattr(work, "dropout", 0) > 0)
    # A row's targets are numbers of 8 bytes, one or three of them.
    assert facts.row_bytes - raw[0].numpy().nbytes in (8, 24)
    assert parameters == sum(parameter.numel() for parameter in work.model().parameters())
    monkeypatch.setattr(counting, "LARGE", 0)
    # As large networks are looked at.
    assert counting._counted_without_numbers(work, data, model_of(work), *stored(data, 2)) == (operations, ())
    # Twice a multiplication and an addition for each weight of a last layer at the very least: forward, backward.
    assert operations > 4 * math.prod(CASES[name].outputs)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_go_in_and_logits_come_out(name: str, dtype: torch.dtype) -> None:
    work, case = small(name), CASES[name]
    raw, stored = case.rows(4)
    inputs, _ = work.example(raw, stored, dtype)
    outputs = work.model().to(dtype)(inputs)
    assert outputs.shape == (4, *case.outputs)
    assert outputs.dtype is dtype
    assert outputs.isfinite().all()


@pytest.mark.parametrize("name", NAMES)
def test_the_loss_of_rows_is_the_sum_of_the_losses_of_each(name: str) -> None:
    work, case = small(name), CASES[name]
    model = work.model().double().eval()
    raw, stored = case.rows(4)

    def loss(part: slice) -> float:
        inputs, targets = work.example(raw[part], stored[part], torch.float64)
        return work.loss(model(inputs), targets).item()

    each = [loss(slice(row, row + 1)) for row in range(4)]
    assert loss(slice(0, 4)) == pytest.approx(sum(each), rel=1e-9)
    assert max(each) > 0
    assert work.count(stored) == case.counted == sum(work.count(stored[row : row + 1]) for row in range(4))


@pytest.mark.parametrize("name", ["mlp", "cnn-medium", "resnet34", "transformer-small"])
def test_classifiers_lose_cross_entropy_and_score_hits(name: str) -> None:
    work = small(name)
    logits = torch.tensor([[0.0, 1.0], [3.0, 0.0], [0.0, 0.0]])
    targets = torch.tensor([1, 1, 0])
    expected = math.log(1 + math.exp(-1)) + math.log(1 + math.exp(3)) + math.log(2)
    assert work.loss(logits, targets).item() == pytest.approx(expected, rel=1e-6)
    assert work.score(logits, targets).item() == 2


@pytest.mark.parametrize("name", NAMES)
def test_a_score_is_the_sum_of_the_scores_of_each_row(name: str) -> None:
    work, case = small(name), CASES[name]
    model = work.model().double().eval()
    raw, stored = case.rows(4)
    score = work.judge(side(4))

    def scored(part: slice) -> torch.Tensor:
        inputs, targets = work.example(raw[part], stored[part], torch.float64)
        return score(model(inputs), targets).reshape(-1).double()

    together = scored(slice(0, 4))
    assert len(together) == len(work.metrics)
    torch.testing.assert_close(together, sum(scored(slice(row, row + 1)) for row in range(4)))
    for metric, total in zip(work.metrics, together.tolist(), strict=True):
        mean = metric.of_mean(total / (4 if metric.over == "rows" else work.count(stored)))
        assert mean > 1 if metric.better == "lower" else 0 <= mean <= 1


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_gets_a_gradient(name: str) -> None:
    work, case = small(name), CASES[name]
    model = work.model()
    inputs, targets = work.example(*case.rows(4), torch.float32)
    work.loss(model(inputs), targets).backward()
    for parameter_name, parameter in model.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.isfinite().all(), parameter_name


@pytest.mark.parametrize("name", NAMES)
def test_a_step_against_the_gradient_lowers_the_loss(name: str) -> None:
    work, case = small(name), CASES[name]
    torch.manual_seed(0)
    model = work.model().double().eval()
    inputs, targets = work.example(*case.rows(4), torch.float64)
    before = work.loss(model(inputs), targets)
    before.backward()
    length = math.sqrt(sum(float((parameter.grad**2).sum()) for parameter in model.parameters()))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 1e-4 / length * parameter.grad
        lower = (before - work.loss(model(inputs), targets)).item()
    # First order: the loss falls by the length of the step times that of the gradient.
    assert lower == pytest.approx(1e-4 * length, rel=0.05)


@pytest.mark.parametrize("name", NAMES)
def test_the_seed_alone_decides_the_initial_weights(name: str) -> None:
    def drawn(seed: int) -> list[torch.Tensor]:
        torch.manual_seed(seed)
        return list(small(name).model().state_dict().values())

    first, again, other = drawn(7), drawn(7), drawn(8)
    assert all(torch.equal(one, two) for one, two in zip(first, again, strict=True))
    assert not all(torch.equal(one, two) for one, two in zip(first, other, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_blocks_one_after_the_other_are_the_network(name: str) -> None:
    work, case = small(name), CASES[name]
    model = work.model().eval()
    carried, _ = work.example(*case.rows(4), torch.float32)
    whole = model(carried)
    for block in work.blocks(model):
        carried = block(carried)
    assert torch.equal(carried, whole)
    held = {id(parameter) for block in work.blocks(model) for parameter in block.parameters()}
    assert held == {id(parameter) for parameter in model.parameters()}


@pytest.mark.parametrize("name", NAMES)
def test_the_tensor_plan_names_linear_layers(name: str) -> None:
    work = small(name)
    named = dict(work.model().named_modules())
    plan = work.tensor_plan()
    assert all(isinstance(named[layer], torch.nn.Linear) for layer in plan)
    assert set(plan.values()) <= {"column", "row"}
    assert ("column" in plan.values()) == ("row" in plan.values())
    assert bool(plan) is not name.startswith("resnet")


@settings(deadline=None, max_examples=25)
@given(st.sampled_from([torch.float32, torch.float64]), st.integers(1, 9))
def test_pixels_are_the_same_numbers_in_any_type(dtype: torch.dtype, rows: int) -> None:
    raw = torch.randint(0, 256, (rows, 28, 28), dtype=torch.uint8)
    made = pixels(raw, dtype)
    assert made.shape == (rows, 1, 28, 28)
    assert made.dtype is dtype
    assert torch.equal(made.double(), (raw.to(dtype) / 127.5 - 1).unsqueeze(1).double())


@pytest.mark.parametrize(("name", "many"), [("mlp", 2), ("cnn-small", 1), ("cnn-medium", 1)])
def test_dropout_is_an_option(name: str, many: int) -> None:
    dropouts = [layer.p for layer in workload(name, {"dropout": 0.5}).model() if isinstance(layer, torch.nn.Dropout)]
    assert dropouts == [0.5] * many


@pytest.mark.parametrize(
    ("name", "options", "shape"),
    [
        ("cnn-medium", {"classes": 3, "channels": 1}, (32, 32)),
        ("resnet18", {"classes": 3, "channels": 1}, (32, 32)),
        ("resnet18", {"classes": 3}, (3, 40, 24)),
        ("resnet34", {"classes": 3}, (1, 60, 45)),
        ("resnet34", {"classes": 3, "channels": 3}, (3, 32, 32)),
    ],
)
def test_classes_and_channels_are_options(name: str, options: dict[str, int], shape: tuple[int, ...]) -> None:
    work = workload(name, options)
    raw = torch.randint(0, 256, (2, *shape), dtype=torch.uint8)
    assert work.model()(work.inputs(raw, torch.float32)).shape == (2, 3)


@pytest.mark.parametrize(
    ("name", "options", "code", "told"),
    [
        ("mlp", {"dropuot": 0.1}, "CFG-KEY", "did you mean dropout?"),
        ("mlp", {"dropout": "much"}, "CFG-TYPE", "workload.options.dropout"),
        ("mlp", {"dropout": True}, "CFG-TYPE", "workload.options.dropout"),
        ("mlp", {"dropout": 1.0}, "CFG-RANGE", "workload.options.dropout"),
        ("cnn-small", {"dropout": -0.1}, "CFG-RANGE", "workload.options.dropout"),
        ("cnn-medium", {"channels": 0}, "CFG-RANGE", "1 or more"),
        ("resnet18", {"num_classes": 10}, "CFG-KEY", "did you mean classes?"),
        ("resnet34", {"classes": 1}, "CFG-RANGE", "workload.options.classes"),
        ("transformer-small", {"dropout": math.nan}, "CFG-RANGE", "workload.options.dropout"),
        ("transformer-lm", {"heads": 7}, "CFG-RANGE", "a width of 512 does not divide into 7 heads"),
        ("transformer-lm", {"tied": 1}, "CFG-TYPE", "workload.options.tied"),
        ("bert-qa", {"length": 0}, "CFG-RANGE", "workload.options.length"),
        ("resnet43", {}, "CFG-VALUE", "did you mean resnet34?"),
    ],
)
def test_wrong_options_are_refused(name: str, options: dict[str, object], code: str, told: str) -> None:
    with pytest.raises(EscalaError) as caught:
        workload(name, options)
    assert caught.value.code == code
    assert told in str(caught.value)


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adamw"])
def test_the_recipe_reaches_the_optimiser(optimizer: str) -> None:
    work = workload("mlp", {})
    train = TrainSpec(optimizer=optimizer, lr=0.125, weight_decay=0.25)  # type: ignore[arg-type]
    made = work.optimizer(work.model().parameters(), train)
    assert type(made).__name__.lower() == optimizer
    assert made.defaults["lr"] == 0.125
    assert made.defaults["weight_decay"] == 0.25


@pytest.mark.parametrize("name", NAMES)
def test_mixed_precision_sums_the_loss_in_float32(name: str) -> None:
    work, case = small(name), CASES[name]
    torch.manual_seed(1)
    model = work.model().eval()
    raw, stored = case.rows(4)
    inputs, targets = work.example(raw, stored, torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outputs = model(inputs)
        loss = work.loss(outputs, targets)
        scores = work.judge(side(4))(outputs, targets)
    assert outputs.dtype is torch.bfloat16
    assert loss.dtype is torch.float32
    assert scores.dtype is not torch.bfloat16
    assert loss.item() == pytest.approx(work.loss(model(inputs), targets).item(), rel=0.1)
    loss.backward()
