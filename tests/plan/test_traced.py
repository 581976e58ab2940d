"""A traced step tells what a real one takes, without taking it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from escala.data.base import Description
from escala.plan.live_bytes import LiveBytes, bytes_of
from escala.plan.model_facts import model_of
from escala.plan.read import parse
from escala.plan.traced import traced
from escala.plan.traces import Trace, TraceKey, keys_of
from escala.workloads import workload
from escala.workloads.base import Workload
from escala.workloads.user import OwnModel

IMAGES = Description(
    name="d",
    origin="real",
    where="w",
    digest="x",
    rows={"train": 9, "test": 900},
    classes=10,
    shape=(28, 28),
    dtype="uint8",
)
TEXT = replace(IMAGES, shape=(17,), dtype="int32", kind="text", classes=0)
LM = {"vocabulary": 100, "length": 16, "layers": 2, "width": 32, "heads": 4, "ff": 64, "dropout": 0.0}
CASES: dict[str, tuple[Mapping[str, Any], Description]] = {
    "mlp": ({"dropout": 0.2}, IMAGES),
    "cnn-small": ({}, IMAGES),
    "transformer-lm": (LM, TEXT),
}


def one(work: Workload, data: Description, rows: int = 64, **key: Any) -> Trace:
    (found,) = traced(work, data, [TraceKey(rows, fused=False, **key)], model_of(work))
    assert found.unknown is None
    return found


def real(work: Workload, data: Description, rows: int) -> tuple[int, nn.Module]:
    """The most that a real pass and its way back hold beside weights."""
    model = work.model()
    with LiveBytes((*model.parameters(), *model.buffers())) as live:
        raw = torch.zeros((rows, *data.shape), dtype=getattr(torch, data.dtype))
        stored = torch.zeros((rows, *((1,) if data.kind == "text" else ())), dtype=torch.int64)
        inputs, targets = work.example(raw, stored, torch.float32)
        loss = work.loss(model(inputs), targets)
        loss.backward()
    return live.peak, model


@pytest.mark.parametrize("name", CASES)
def test_the_trace_is_what_a_real_step_takes(name: str) -> None:
    options, data = CASES[name]
    work = workload(name, options)
    for rows in (3, 300):
        trace = one(work, data, rows)
        peak, model = real(work, data, rows)
        assert trace.with_gradients == pytest.approx(peak, rel=0.01)
    assert trace.parameters == trace.gradients == bytes_of(model.parameters())


@pytest.mark.parametrize(
    ("key", "state"),
    [
        ({"optimizer": "sgd"}, 0),
        ({"optimizer": "sgd", "momentum": True}, 1),
        ({"optimizer": "adam"}, 2),
        ({"optimizer": "adamw", "precision": "bf16"}, 2),
        ({"optimizer": "adamw", "precision": "fp64"}, 2),
    ],
)
def test_an_optimiser_keeps_so_many_numbers_a_weight(key: dict[str, Any], state: int) -> None:
    trace = one(workload("mlp", {}), IMAGES, **key)
    assert trace.optimizer == state * trace.parameters
    assert trace.parameters == 669_706 * (8 if key.get("precision") == "fp64" else 4)


def test_kernels_over_all_weights_need_room_for_all_and_one_kernel_needs_none() -> None:
    work = workload("mlp", {})
    plain = one(work, IMAGES, optimizer="adamw")
    many = one(work, IMAGES, optimizer="adamw", kernel="foreach")
    assert many.stepping == pytest.approx(many.parameters, rel=0.01)
    # One weight after the other: a few times the largest.
    assert plain.stepping % (784 * 512 * 4) == 0
    assert one(work, IMAGES, optimizer="adamw", kernel="fused").stepping == 0


def test_sixteen_bits_and_checkpoints_take_less_a_row() -> None:
    work = workload("transformer-lm", {**LM, "layers": 6})
    plain = one(work, TEXT)
    narrow = one(work, TEXT, precision="bf16")
    assert narrow.passing < 0.9 * plain.passing
    assert plain.casts == 0
    # All weights but the embeddings', of which the head shares one, and the normalisations'.
    assert 0.4 * narrow.parameters < narrow.casts <= 0.5 * narrow.parameters
    assert one(work, TEXT, again=True).passing < 0.6 * plain.passing
    assert plain.judging < 0.3 * plain.passing


def test_a_seat_holds_its_part_of_split_layers() -> None:
    work = workload("transformer-lm", LM)
    whole, half, quarter = (one(work, TEXT, by_row=True, parts=parts) for parts in (1, 2, 4))
    # Each layer has four 32 x 32 and two 32 x 64 that are split, and biases of all columns.
    split = 2 * 4 * (4 * 32 * 32 + 2 * 32 * 64 + 3 * 32 + 64)
    assert whole.parameters - half.parameters == split // 2
    assert whole.parameters - quarter.parameters == split * 3 // 4
    assert quarter.passing < half.passing < whole.passing
    (uneven,) = traced(work, TEXT, [TraceKey(8, parts=3)], model_of(work))
    assert uneven.unknown is not None
    assert "into 3 equal parts" in uneven.unknown


def test_layers_split_alone_pass_shapes_too() -> None:
    def network() -> nn.Module:
        layers: Any = nn.Sequential(nn.Flatten(), nn.Linear(784, 20), nn.Linear(20, 10))
        layers.tensor_plan = lambda: {"1": "row", "2": "column"}
        return layers

    trace = one(OwnModel(network, ()), IMAGES, parts=2)
    assert trace.parameters == 4 * (392 * 20 + 20 + 20 * 5 + 5)


def test_of_a_fused_dropout_one_byte_an_element_is_kept() -> None:
    work = workload("mlp", {"dropout": 0.5, "hidden": (4000,)})
    slow, fast = traced(work, IMAGES, [TraceKey(8000, fused=False), TraceKey(8000, fused=True)], model_of(work))
    assert slow.passing - fast.passing == pytest.approx(3 * 4000 * 8000, rel=0.05)


def test_a_network_that_looks_at_numbers_is_told_and_nothing_else_fails() -> None:
    class Looking(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last = nn.Linear(784, 10)

        def forward(self, images: Tensor) -> Tensor:
            logits: Tensor = self.last(images.flatten(1)) * (1.0 if images.sum().item() > 0 else 2.0)
            return logits

    (found,) = traced(OwnModel(Looking, ()), IMAGES, [TraceKey(8)], Looking())
    assert found.unknown is not None
    assert "cannot be traced without numbers" in found.unknown


def test_keys_are_those_of_the_strategies_at_every_point_of_a_sweep() -> None:
    text = """
        [workload]
        name = "mlp"
        [train]
        steps = 3
        [[strategy]]
        name = "single"
        device = "cpu"
        [[strategy]]
        name = "tensor"
        ways = 4
        options = { replicas = 2 }
        execution = { activation_checkpointing = true }
        [[strategy]]
        name = "single"
        peer = "plain"
        [sweep]
        "train.optimizer" = ["sgd", "adamw"]
    """
    (keys,) = keys_of(parse(text, "x.toml").experiment)
    assert set(keys) == {
        key
        for optimizer in ("sgd", "adamw")
        for key in (
            TraceKey(64, optimizer=optimizer, fused=False),
            TraceKey(32, optimizer=optimizer, fused=None, again=True, by_row=True, parts=2),
        )
    }


def test_parts_of_a_network_that_is_cut_are_traced_one_by_one() -> None:
    work = workload("transformer-lm", LM)
    whole = one(work, TEXT, 32)
    cut = one(work, TEXT, 32, cut=True)
    assert whole.along == ()
    assert len(cut.along) == 5
    embedding, *layers, norm, head = cut.along
    assert layers[0] == layers[1]
    # The head is the embedding, which both ends of a cut network hold.
    assert sum(part.parameters for part in cut.along) == whole.parameters + head.parameters
    # Rows of an embedding are looked up, and a normalisation multiplies number by number.
    assert [part.multiplies for part in cut.along] == [False, True, True, False, True]
    assert embedding.operations == norm.operations == 0 < layers[0].operations
    # What goes from part to part: floats of the width for every token.
    assert layers[0].given == head.given == 32 * 16 * 32 * 4
    # Together they save nearly what the whole holds, and the loss is the last one's.
    assert sum(part.saved for part in cut.along) == pytest.approx(whole.passing, rel=0.5)
    assert head.peak > 2 * head.saved


WIDE = OwnModel(lambda: nn.Sequential(nn.Flatten(), nn.Linear(784, 4000), nn.Linear(4000, 10)), ())
"""Of a row 784 numbers go in, 4,000 through and 10 out."""


def test_no_more_rows_are_judged_at_once_than_a_split_has() -> None:
    few, none = (replace(IMAGES, rows={"train": 900, **rest}) for rest in ({"validation": 50, "test": 60}, {}))
    made = 4 * (784 + 4000 + 10)
    assert one(WIDE, few).judging == pytest.approx(60 * made, rel=0.2)
    assert one(WIDE, IMAGES).judging == pytest.approx(500 * made, rel=0.2)
    assert one(WIDE, none).judging == 0


def test_ends_of_splits_are_traced_by_themselves() -> None:
    some = replace(IMAGES, rows={"train": 900, "validation": 1200, "test": 60, "more": 1000})
    found = one(WIDE, some)
    made = 4 * (784 + 4000 + 10)
    assert dict(found.ends) == {60: pytest.approx(60 * made, rel=0.2), 200: pytest.approx(200 * made, rel=0.2)}
    assert one(WIDE, replace(IMAGES, rows={"train": 900, "test": 60})).ends == ()
    assert one(WIDE, some, cut=True).ends == ()


def test_encoder_layers_are_judged_as_they_are_trained() -> None:
    layer = nn.TransformerEncoderLayer(16, 2, 64, batch_first=True)
    network = nn.Sequential(nn.Flatten(1, 2), nn.Linear(28, 16), layer, nn.Flatten(), nn.Linear(28 * 16, 10))
    work, few = OwnModel(lambda: network, ()), replace(IMAGES, rows={"test": 60})
    whole, cut = one(work, few), one(work, few, cut=True)
    inner = 60 * 28 * 64 * 4
    assert whole.judging > inner
    assert max(part.judging for part in cut.along) > inner


def test_each_part_is_known_while_it_judges() -> None:
    few = replace(IMAGES, rows={"train": 900, "test": 60})
    _, wide, last = one(WIDE, few, cut=True).along
    assert (wide.taken, wide.judging) == (0, 60 * 4 * 4000)
    assert (last.taken, last.judging) == (60 * 4 * 4000, 60 * 4 * 10)


def test_what_no_way_back_needs_is_not_kept_by_a_part() -> None:
    network = nn.Sequential(nn.Flatten(), nn.Linear(784, 100), nn.ReLU(), nn.Linear(100, 10))
    _, linear, relu, last = one(OwnModel(lambda: network, ()), IMAGES, 8, cut=True).along
    # Of a linear layer and its activation the activation's outputs stay, which the next layer needs.
    assert (linear.saved, relu.saved) == (8 * 100 * 4, 0)
    # By itself it goes several times: a new gradient beside the last one, and outputs with theirs.
    assert last.alone == pytest.approx(3 * last.parameters + 2 * 8 * 100 * 4 + 2 * 8 * 10 * 4, rel=0.01)


def test_a_tied_weight_is_told_where_it_stands_first() -> None:
    *others, head = one(workload("transformer-lm", LM), TEXT, 32, cut=True).along
    assert head.tied == ((0, 4 * 100 * 32),)
    assert {part.tied for part in others} == {()}


def test_the_first_of_several_copies_has_the_outputs_of_all_and_the_loss() -> None:
    class Sum(OwnModel):
        def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
            return (outputs * outputs).sum()

    # Outputs are much: 1,000 a row, of 8 rows on each of 4 devices.
    work = Sum(lambda: nn.Sequential(nn.Flatten(), nn.Linear(784, 1000)), ())
    first, other = one(work, replace(IMAGES, rows={"train": 900, "test": 6}), 2000, copies=4).along
    own, everybody = 2000 * 1000 * 4, 8000 * 1000 * 4
    # Its own outputs are gone once they are gathered; on the way back come gradients by both factors.
    assert first.peak == pytest.approx(3 * everybody, rel=0.01)
    # The gradient of its outputs, which themselves are gone, and that of its weights.
    assert other.peak == own + 785 * 1000 * 4
    # Two rows of six are judged by each, and all outputs come to the first.
    assert first.judging - other.judging == 8 * 1000 * 4
    assert other.judging == 2 * 1000 * 4


def test_convolutions_take_room_on_accelerators_by_how_images_lie() -> None:
    def network() -> nn.Module:
        return nn.Sequential(nn.Conv2d(8, 32, 1, bias=False), nn.Flatten())

    work, pictures = OwnModel(network, ()), replace(IMAGES, shape=(8, 7, 7), dtype="float32", rows={"test": 60})
    made, moved = 4 * 60 * 32 * 49, 4 * (60 * (8 + 32) * 49 + 8 * 32)
    for fused, layout, peak in (
        (False, "contiguous", made),
        (True, "contiguous", made + moved),
        (True, "channels_last", made),
    ):
        key = TraceKey(8, precision="tf32", fused=fused, cut=True, memory_format=layout)
        (found,) = traced(work, pictures, [key], model_of(work))
        assert found.unknown is None
        assert found.along[0].judging == peak


def test_a_network_that_cannot_be_cut_is_not_traced_so() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(784, 10))

        def forward(self, rows: Tensor) -> Tensor:
            return rows.flatten(1) @ self.weight

    (found,) = traced(OwnModel(Twice, ()), IMAGES, [TraceKey(4, fused=False, cut=True)], Twice())
    assert found.unknown is not None
    assert "cannot be cut" in found.unknown


def test_parts_that_work_in_place_are_traced_like_others() -> None:
    def network(*, inplace: bool) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.ReLU(inplace=inplace), nn.Linear(64, 10))

    there, new = (one(OwnModel(network, (("inplace", way),)), IMAGES, 8, cut=True).along for way in (True, False))
    # A new tensor takes the place of the one that nobody needs any more.
    assert there[2].saved == new[2].saved == 0
    assert (there[1], there[3]) == (new[1], new[3])
