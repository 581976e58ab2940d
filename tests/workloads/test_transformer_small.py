from __future__ import annotations

import pytest
import torch
from workload_cases import LENGTH, VOCABULARY, sentences, small

from escala.data.base import Form
from escala.workloads import workload


@pytest.fixture
def model() -> torch.nn.Module:
    torch.manual_seed(3)
    return small("transformer-small").model().double()


@pytest.mark.parametrize("training", [True, False])
def test_padding_changes_nothing(model: torch.nn.Module, training: bool) -> None:
    """In training PyTorch takes another way through the layer than in judging."""
    for layer in model.modules():
        if isinstance(layer, torch.nn.Dropout | torch.nn.MultiheadAttention):
            layer.p = layer.dropout = 0.0
    model.train(training)
    tokens = torch.tensor([[1, 5, 6, 7]])
    padded = torch.nn.functional.pad(tokens, (0, 8))
    with torch.set_grad_enabled(training):
        torch.testing.assert_close(model(padded), model(tokens))
        assert not torch.allclose(model(padded), model(torch.tensor([[1, 5, 6, 7, 5]])))


def test_judging_and_training_agree_without_dropout() -> None:
    torch.manual_seed(3)
    model = small("transformer-small", dropout=0.0).model().double()
    tokens = sentences(4)[0].long()
    trained = model.train()(tokens)
    with torch.no_grad():
        torch.testing.assert_close(model.eval()(tokens), trained.detach())


def test_order_matters(model: torch.nn.Module) -> None:
    model.eval()
    assert not torch.allclose(model(torch.tensor([[1, 5, 6]])), model(torch.tensor([[1, 6, 5]])))


def test_rows_of_padding_alone_give_numbers(model: torch.nn.Module) -> None:
    zeros = torch.zeros(2, LENGTH, dtype=torch.int64)
    assert model.train()(zeros).isfinite().all()
    with torch.no_grad():
        assert model.eval()(zeros).isfinite().all()


def test_the_vector_of_padding_stays_zero() -> None:
    work = small("transformer-small")
    model = work.model()
    inputs, targets = work.example(*sentences(4), torch.float32)
    work.loss(model(inputs), targets).backward()
    weight = model.get_parameter("0.embedding.tokens.weight")
    assert weight[0].abs().max() == 0
    assert weight.grad is not None
    assert weight.grad[0].abs().max() == 0
    assert weight.grad[1].abs().max() > 0


def test_batches_of_like_lengths_are_an_option() -> None:
    raw = sentences(4)[0]
    assert small("transformer-small").lengths(raw) is None
    lengths = small("transformer-small", by_length=True).lengths(raw)
    assert lengths is not None
    assert lengths.tolist() == [2, 5, 8, 11]
    assert lengths.dtype is torch.int64


def test_what_it_wants_its_rows_to_be() -> None:
    assert workload("transformer-small", {}).form() == Form("labelled text", "bytes", 16_000, 256)
    assert small("transformer-small").form() == Form("labelled text", "bytes", VOCABULARY, LENGTH)
