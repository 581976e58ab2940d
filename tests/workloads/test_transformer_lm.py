from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from workload_cases import LENGTH, VOCABULARY, small, stretches

from escala.data.base import Description, Form
from escala.plan.model_facts import model_facts, model_of
from escala.workloads import workload
from escala.workloads.transformer_lm import perplexity


def test_no_token_sees_those_after_it() -> None:
    model = small("transformer-lm").model().double().eval()
    tokens = torch.randint(0, VOCABULARY, (1, LENGTH), generator=torch.Generator().manual_seed(1))
    before = model(tokens)
    for place in range(LENGTH):
        other = tokens.clone()
        other[0, place] = (other[0, place] + 1) % VOCABULARY
        after = model(other)
        assert torch.equal(after[0, :place], before[0, :place])
        assert not torch.allclose(after[0, place], before[0, place])
        assert not torch.allclose(after[0, -1], before[0, -1])


def test_each_token_is_asked_for_the_next_one() -> None:
    raw, counts = stretches(2)
    inputs, targets = small("transformer-lm").example(raw, counts, torch.float32)
    assert inputs.tolist() == raw[:, :-1].tolist()
    assert inputs.dtype is targets.dtype is torch.int64
    assert targets[0].tolist() == raw[0, 1:].tolist()
    assert targets[1].tolist() == [*raw[1, 1:6].tolist(), *[-100] * (LENGTH - 5)]


def test_loss_and_score_are_sums_over_the_tokens_that_count() -> None:
    work = small("transformer-lm")
    raw, counts = stretches(2)
    _, targets = work.example(raw, counts, torch.float32)
    logits = torch.zeros(2, LENGTH, VOCABULARY)
    assert work.count(counts) == LENGTH + 5
    assert work.loss(logits, targets).item() == pytest.approx((LENGTH + 5) * math.log(VOCABULARY), rel=1e-6)
    (metric,) = work.metrics
    assert (metric.name, metric.better, metric.over) == ("perplexity", "lower", "count")
    mean = work.score(logits, targets).item() / work.count(counts)
    # Who knows nothing chooses among all tokens.
    assert metric.of_mean(mean) == pytest.approx(VOCABULARY, rel=1e-5)


def test_what_lies_in_the_padding_is_never_counted() -> None:
    work = small("transformer-lm")
    model = work.model().eval()
    raw, counts = stretches(2)
    other = raw.clone()
    other[1, 6:] = 9
    losses = []
    for rows in (raw, other):
        inputs, targets = work.example(rows, counts, torch.float32)
        losses.append(work.loss(model(inputs), targets).item())
    assert losses[0] == losses[1]


def test_a_row_without_a_token_to_predict_adds_nothing() -> None:
    work = small("transformer-lm")
    raw, _ = stretches(1)
    none = torch.zeros(1, 1, dtype=torch.int64)
    inputs, targets = work.example(raw, none, torch.float32)
    assert work.count(none) == 0
    assert work.loss(work.model()(inputs), targets).item() == 0


def test_narrow_logits_are_summed_in_float32() -> None:
    work = small("transformer-lm")
    _, targets = work.example(*stretches(2), torch.float32)
    logits = torch.randn(2, LENGTH, VOCABULARY, generator=torch.Generator().manual_seed(2)).bfloat16()
    made = work.score(logits, targets)
    assert made.dtype is torch.float32
    assert made.item() == pytest.approx(work.score(logits.double(), targets).item(), rel=1e-6)


@pytest.mark.parametrize(("mean", "expected"), [(0.0, 1.0), (math.log(50), 50.0), (1e6, math.exp(700))])
def test_perplexity_is_a_number_that_a_record_holds(mean: float, expected: float) -> None:
    assert perplexity(mean) == pytest.approx(expected)
    assert math.isnan(perplexity(math.nan))


def test_a_tied_head_is_the_embedding() -> None:
    tied = small("transformer-lm").model()
    assert tied.get_parameter("4.weight") is tied.get_parameter("0.tokens.weight")
    untied = small("transformer-lm", tied=False).model()
    assert untied.get_parameter("4.weight") is not untied.get_parameter("0.tokens.weight")
    with torch.device("meta"):
        large = workload("transformer-lm", {"tied": False}).model()
    assert sum(parameter.numel() for parameter in large.parameters()) == 76_814_336
    # One weight also after a change of type, as when the network is placed.
    doubled = tied.to(torch.float64)
    assert doubled.get_parameter("4.weight") is doubled.get_parameter("0.tokens.weight")


def test_initial_weights_have_the_spread_of_gpt_2() -> None:
    named = dict(small("transformer-lm", width=64, ff=256, layers=8, vocabulary=500).model().named_parameters())
    assert named["0.tokens.weight"].std().item() == pytest.approx(0.02, rel=0.05)
    assert named["1.wide.weight"].std().item() == pytest.approx(0.02, rel=0.05)
    assert named["1.attention.key.weight"].std().item() == pytest.approx(0.02, rel=0.05)
    assert named["8.narrow.weight"].std().item() == pytest.approx(0.005, rel=0.05)
    assert named["8.attention.out.weight"].std().item() == pytest.approx(0.005, rel=0.05)
    assert named["8.narrow.bias"].abs().max().item() == 0


def test_attention_is_a_causal_softmax_of_each_head() -> None:
    torch.manual_seed(4)
    attention = small("transformer-lm", dropout=0.0).model().double().get_submodule("1.attention")
    hidden = torch.randn(2, 5, 16, dtype=torch.float64)
    query, key, value = (getattr(attention, name)(hidden) for name in ("query", "key", "value"))
    heads = []
    for head in (slice(0, 8), slice(8, 16)):
        scores = query[..., head] @ key[..., head].transpose(1, 2) / math.sqrt(8)
        hidden_from = torch.ones(5, 5, dtype=torch.bool).triu(1)
        heads.append(scores.masked_fill(hidden_from, -math.inf).softmax(-1) @ value[..., head])
    expected = attention.get_submodule("out")(torch.cat(heads, dim=-1))
    torch.testing.assert_close(attention(hidden), expected)


def test_heads_can_be_divided_among_devices() -> None:
    """What a column-wise split does: a seat with the rows of one head's weights computes that head."""
    torch.manual_seed(4)
    attention = small("transformer-lm", dropout=0.0).model().double().get_submodule("1.attention")
    hidden = torch.randn(2, 5, 16, dtype=torch.float64)
    whole = attention(hidden)
    weights = {name: layer for name, layer in attention.named_children() if isinstance(layer, nn.Linear)}
    kept = {name: (layer.weight.data, layer.bias.data) for name, layer in weights.items()}
    total = torch.zeros_like(whole)
    for head in (slice(0, 8), slice(8, 16)):
        for name, layer in weights.items():
            weight, bias = kept[name]
            layer.weight.data = weight[:, head] if name == "out" else weight[head]
            layer.bias.data = bias / 2 if name == "out" else bias[head]
        total += attention(hidden)
    torch.testing.assert_close(total, whole)


def test_what_it_wants_its_rows_to_be() -> None:
    assert workload("transformer-lm", {}).form() == Form("text", "bytes", 50_257, 256)
    assert workload("transformer-lm", {}).evaluation_rows == 8


def test_the_products_of_attention_are_among_the_counted_operations() -> None:
    work = small("transformer-lm")
    data = Description("made up", "generated", "", "", (LENGTH + 1,), "int32", classes=0, kind="text")
    operations = model_facts(work, data, model_of(work)).flops_per_sample
    weights = 2 * (4 * 16 * 16 + 2 * 16 * 24) + 16 * VOCABULARY
    attention = 2 * 2 * LENGTH * 16
    # Forward once and backward twice, each a multiplication and an addition.
    assert operations == 3 * 2 * LENGTH * (weights + attention)
