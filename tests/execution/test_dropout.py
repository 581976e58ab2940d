from __future__ import annotations

from collections.abc import Callable

import attending
import pytest
import torch
from torch import Tensor, nn

from escala.execution.dropout import draw_by_row, nothing_drawn
from escala.execution.piece import Piece
from escala.terms.errors import EscalaError
from escala.terms.experiment import ExecutionSpec
from escala.workloads.attention import Attend

CPU = torch.device("cpu")
ROWS, WIDTH = 12, 6


def dropping(*layers: nn.Module, seed: int = 3) -> tuple[nn.Module, Piece]:
    piece = Piece()
    model, found = draw_by_row(nn.Sequential(*layers), seed, piece)
    assert found
    return model.train(), piece


def passed(model: nn.Module, piece: Piece, rows: Tensor, start: int = 0, at: int = 0) -> Tensor:
    piece.begin(len(rows), ROWS, start=start, at=at)
    outputs: Tensor = model(rows)
    return outputs


def test_what_is_dropped_depends_on_the_row_alone_and_not_on_whose_it_is() -> None:
    model, piece = dropping(nn.Dropout(0.5), nn.Dropout(0.25))
    ones = torch.ones(ROWS, 50)
    whole = passed(model, piece, ones)
    parts = [passed(model, piece, ones[:5], 0), passed(model, piece, ones[5:], 5)]
    assert torch.equal(torch.cat(parts), whole)
    # What stays is scaled up, so that the mean stays: 1 / 0.5 / 0.75.
    assert whole.unique().tolist() == [0.0, pytest.approx(1 / 0.5 / 0.75)]
    assert not torch.equal(whole[0], whole[1])


@pytest.mark.parametrize("change", ["step", "seed", "layer", "use"])
def test_steps_seeds_layers_and_uses_drop_others(change: str) -> None:
    ones = torch.ones(ROWS, 50)
    model, piece = dropping(nn.Dropout(0.5))
    first = passed(model, piece, ones)
    if change == "step":
        other = passed(model, piece, ones, at=1)
    elif change == "seed":
        other = passed(*dropping(nn.Dropout(0.5), seed=4), ones)
    elif change == "layer":
        other = passed(*dropping(nn.Identity(), nn.Dropout(0.5)), ones)
    else:
        other = model(ones)
    agree = (other == first).double().mean()
    assert 0.4 < agree < 0.6
    # And the next pass begins anew.
    assert torch.equal(passed(model, piece, ones), first)


@pytest.mark.parametrize(
    ("layer", "shape"), [(nn.Dropout1d, (4,)), (nn.Dropout2d, (4, 3)), (nn.Dropout3d, (2, 3, 2))]
)
def test_channels_are_dropped_whole(layer: Callable[[float], nn.Module], shape: tuple[int, ...]) -> None:
    model, piece = dropping(layer(0.5))
    outputs = passed(model, piece, torch.ones(ROWS, 40, *shape)).flatten(2)
    assert (outputs == outputs[..., :1]).all()
    assert 0.4 < (outputs[..., 0] == 0).double().mean() < 0.6


def test_without_drops_it_is_torchs_own_attention() -> None:
    """The same network as torch computes it, where what is dropped is next to nothing."""
    torch.manual_seed(0)
    images = torch.randn(ROWS, 1, 28, 28, dtype=torch.float64)
    plain = attending.network(0.0).double()
    model = attending.network(1e-12).double()
    model.load_state_dict(plain.state_dict())
    model, found = draw_by_row(model, 0, piece := Piece())
    assert found
    assert model.state_dict().keys() == plain.state_dict().keys()
    torch.testing.assert_close(passed(model, piece, images), plain(images))
    with torch.no_grad():
        torch.testing.assert_close(model.eval()(images), plain.eval()(images))


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("kind", ["padding", "pairs", "both", "by head", "added", "none"])
def test_masks_are_taken_as_torch_takes_them(kind: str, asked: bool) -> None:
    torch.manual_seed(1)
    theirs = nn.MultiheadAttention(8, 2, 0.0, batch_first=True).double()
    ours = nn.MultiheadAttention(8, 2, 1e-12, batch_first=True).double()
    ours.load_state_dict(theirs.state_dict())
    model, _ = draw_by_row(ours, 0, Piece())
    rows, others = torch.randn(3, 5, 8).double(), torch.randn(3, 4, 8).double()
    padding = torch.tensor([[False] * 4, [False, False, True, True], [False, True, False, True]])
    pairs = torch.ones(5, 4, dtype=torch.bool).triu(1)
    masks = {
        "padding": {"key_padding_mask": padding},
        "pairs": {"attn_mask": pairs},
        "both": {"key_padding_mask": padding, "attn_mask": pairs},
        "by head": {"attn_mask": pairs.expand(6, 5, 4) & (torch.arange(6) % 2 == 0)[:, None, None]},
        "added": {"attn_mask": torch.randn(5, 4).double()},
        "none": {},
    }[kind]
    given, expected = (one(rows, others, others, need_weights=asked, **masks) for one in (model, theirs))
    torch.testing.assert_close(given[0], expected[0])
    assert (given[1] is None) is not asked
    if asked:
        torch.testing.assert_close(given[1], expected[1])


def test_weights_of_attention_are_dropped_by_row() -> None:
    torch.manual_seed(2)
    model, piece = dropping(attending.network(0.3, width=8))
    images = torch.randn(ROWS, 1, 28, 28)
    whole = passed(model, piece, images)
    parts = torch.cat([passed(model, piece, images[:7], 0), passed(model, piece, images[7:], 7)])
    torch.testing.assert_close(parts, whole)
    assert not torch.allclose(passed(model, piece, images, at=1), whole, atol=1e-2)
    # Elsewhere in the batch the same images are other rows.
    assert not torch.allclose(passed(model, piece, images[:7], 5), whole[:7], atol=1e-2)


def test_evaluation_drops_nothing_and_nothing_is_exchanged_needlessly() -> None:
    model, _ = dropping(nn.Dropout(0.5))
    rows = torch.randn(4, 3)
    assert torch.equal(model.eval()(rows), rows)
    plain = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.0), Attend(0.0))
    layers = list(plain.modules())
    assert draw_by_row(plain, 0, Piece()) == (plain, False)
    assert list(plain.modules()) == layers


def test_dropping_everything_leaves_nothing() -> None:
    model, piece = dropping(nn.Dropout(1.0))
    assert not passed(model, piece, torch.ones(ROWS, 3)).any()


class Functional(nn.Module):
    def forward(self, rows: Tensor) -> Tensor:
        return nn.functional.dropout(rows, 0.5, self.training)


@pytest.mark.parametrize(
    ("layer", "named"),
    [
        (Functional(), "the model"),
        (nn.AlphaDropout(0.2), "0"),
        (nn.RReLU(), "0"),
        (nn.LSTM(3, 3, num_layers=2, dropout=0.5, batch_first=True), "0"),
        (nn.TransformerEncoderLayer(4, 2, 8, 0.1, batch_first=False), "0.self_attn"),
    ],
)
def test_what_cannot_be_reached_is_refused_by_name(layer: nn.Module, named: str) -> None:
    piece = Piece()
    model = draw_by_row(nn.Sequential(layer), 0, piece)[0].train()
    width = 4 if isinstance(layer, nn.TransformerEncoderLayer) else 3
    rows = torch.randn(ROWS, ROWS, width)
    piece.begin(ROWS, ROWS)
    refusal = pytest.raises(EscalaError, match=f"error.MODEL-RANDOM. {named}: .*random = .seat")
    with refusal as caught, nothing_drawn(model, CPU):
        model(rows)
    assert caught.value.exit == 3
    with nothing_drawn(model, CPU):
        model.eval()(rows)


def test_what_is_no_row_is_refused() -> None:
    model, piece = dropping(nn.Flatten(0), nn.Dropout(0.5))
    with pytest.raises(EscalaError, match=r"MODEL-RANDOM. 1: drops parts of 36 rows where 12 pass"):
        passed(model, piece, torch.ones(ROWS, 3))
    # What only keeps a seat in step is no row of anybody's.
    piece.begin(0, ROWS)
    model(torch.ones(1, 3))


def test_ghosts_ask_for_it_unless_told_otherwise() -> None:
    told = {
        (batchnorm, random): ExecutionSpec(batchnorm=batchnorm, random=random).by_row
        for batchnorm in ("local", "sync", "ghost:8")
        for random in (None, "seat", "row")
    }
    assert {key for key, by_row in told.items() if by_row} == {
        ("local", "row"),
        ("sync", "row"),
        ("ghost:8", "row"),
        ("ghost:8", None),
    }
