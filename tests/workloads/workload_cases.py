"""Every workload small enough to train a step of, with rows and targets as its data set stores them."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor

from escala.workloads import workload
from escala.workloads.base import Workload

needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="the extra transformers is not installed"
)

LENGTH = 12
VOCABULARY = 37


@dataclass(frozen=True)
class Case:
    """`parameters` with default options; all else with the `small` ones. `rows` gives `rows` stored rows."""

    parameters: int
    rows: Callable[[int], tuple[Tensor, Tensor]]
    outputs: tuple[int, ...]
    small: dict[str, Any] = field(default_factory=dict)
    counted: int = 4
    """What counts in four rows."""


def images(*shape: int, classes: int, floats: bool = False) -> Callable[[int], tuple[Tensor, Tensor]]:
    def rows(many: int) -> tuple[Tensor, Tensor]:
        drawn = torch.Generator().manual_seed(4)
        raw = torch.randint(0, 256, (many, *shape), dtype=torch.uint8, generator=drawn)
        return (raw / 255).half() if floats else raw, torch.arange(many) % classes

    return rows


def sentences(many: int) -> tuple[Tensor, Tensor]:
    """[CLS], then three tokens more each row, then padding."""
    raw = torch.zeros(many, LENGTH, dtype=torch.int32)
    for row in range(many):
        tokens = min(LENGTH, 2 + 3 * row)
        raw[row, 0] = 1
        raw[row, 1:tokens] = torch.arange(2, tokens + 1, dtype=torch.int32) + row
    return raw, torch.arange(many) % 2


def stretches(many: int) -> tuple[Tensor, Tensor]:
    """Every second row ends after five predicted tokens."""
    drawn = torch.Generator().manual_seed(5)
    raw = torch.randint(1, VOCABULARY, (many, LENGTH + 1), dtype=torch.int32, generator=drawn)
    raw[1::2, 6:] = 0
    counts = torch.full((many, 1), LENGTH)
    counts[1::2] = 5
    return raw, counts


def questions(many: int) -> tuple[Tensor, Tensor]:
    """A question of three tokens and its mark, a context from token 4; every fourth answer is cut off."""
    drawn = torch.Generator().manual_seed(6)
    raw = torch.zeros(many, 2, LENGTH, dtype=torch.int32)
    raw[:, 0] = torch.randint(5, VOCABULARY, (many, LENGTH), dtype=torch.int32, generator=drawn)
    raw[:, 1, 4:] = 1
    raw[1::2, :, -2:] = 0
    targets = torch.stack((torch.full((many,), 5), torch.full((many,), 6), torch.arange(many)), dim=1)
    targets[3::4, :2] = -1
    return raw, targets


def side(many: int) -> bytes:
    """A side file for `questions`: a word a token of its context; the second and third are the answer."""
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
    starts = [sum(len(word) + 1 for word in words[:place]) for place in range(len(words))]
    offsets = [[0, 0]] * 4 + [[start, start + len(word)] for start, word in zip(starts, words, strict=True)]
    line = json.dumps({"context": " ".join(words), "offsets": offsets, "answers": ["two three"]})
    return "".join(line + "\n" for _ in range(many)).encode()


SMALL_BERT = {"layers": 2, "width": 16, "heads": 2, "length": LENGTH, "vocabulary": VOCABULARY}
SMALL_LM = {"layers": 2, "width": 16, "heads": 2, "ff": 24, "length": LENGTH, "vocabulary": VOCABULARY}

CASES = {
    "mlp": Case(669_706, images(28, 28, classes=10), (10,)),
    "cnn-small": Case(421_642, images(28, 28, classes=10), (10,)),
    "cnn-medium": Case(2_474_506, images(3, 32, 32, classes=10), (10,)),
    "resnet18": Case(11_220_132, images(3, 32, 32, classes=100), (100,)),
    "resnet34": Case(21_283_017, images(37, 49, classes=9, floats=True), (9,)),
    "transformer-small": Case(7_353_730, sentences, (2,), {"vocabulary": VOCABULARY, "length": LENGTH}),
    "transformer-lm": Case(51_082_752, stretches, (LENGTH, VOCABULARY), SMALL_LM, counted=2 * LENGTH + 2 * 5),
    "bert-qa": Case(108_893_186, questions, (LENGTH, 2), SMALL_BERT),
}

NAMES = [pytest.param(name, marks=needs_transformers if name == "bert-qa" else ()) for name in CASES]


def small(name: str, **options: Any) -> Workload:
    """The workload with the case's options and these."""
    return workload(name, CASES[name].small | options)
