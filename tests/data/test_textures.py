from __future__ import annotations

import hashlib

import numpy as np
import pytest

from escala.data import generated, textures
from escala.data.textures import BLOCK, PATTERNS, SHAPES, Textures, class_name, draw_block, find


def images(source: Textures, part: str = "train") -> np.ndarray:
    return np.concatenate(list(source.blocks(part)))


@pytest.mark.parametrize("classes", [10, 100])
def test_shapes_types_and_balance(classes: int) -> None:
    source = find(f"synthetic-cifar{classes}:{BLOCK + 100}+30", {})
    for part, rows in (("train", BLOCK + 100), ("test", 30)):
        drawn, targets = images(source, part), source.targets(part)
        assert (drawn.shape, drawn.dtype) == ((rows, 3, 32, 32), np.uint8)
        assert (targets.shape, targets.dtype) == ((rows,), np.int64)
    assert np.bincount(source.targets("train")[:BLOCK]).tolist() == [BLOCK // classes] * classes
    facts = source.facts()
    assert (facts.shape, facts.dtype, facts.classes) == ((3, 32, 32), "uint8", classes)
    assert len(set(facts.class_names)) == classes


def test_a_row_depends_on_seed_part_and_number_alone() -> None:
    small, large = Textures("x", 10, train=7), Textures("x", 10, train=BLOCK + 1)
    np.testing.assert_array_equal(images(small), images(large)[:7])
    np.testing.assert_array_equal(small.targets("train"), large.targets("train")[:7])
    assert not np.array_equal(images(small), images(Textures("x", 10, test=7), "test"))
    assert not np.array_equal(images(small), images(Textures("x", 10, train=7, seed=1)))


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generated.os, "cpu_count", lambda: 3)
    one_by_one = np.concatenate([draw_block(100, 0, "train", number) for number in range(3)])
    np.testing.assert_array_equal(images(Textures("x", 100, train=3 * BLOCK)), one_by_one)


@pytest.mark.parametrize(
    ("classes", "digest"),
    [
        (10, "42841a44ca090e7ffb42e3d3773368f7fbd5bf1a91fb3b7ecb07b6d40225bf56"),
        (100, "a54e8f94e115afd00c5d10ca06887b0ca4f62996828635397126570d3da69bbd"),
    ],
)
def test_known_bytes(classes: int, digest: str) -> None:
    """These bytes are the same on every machine; a change of them needs a new REVISION."""
    assert textures.REVISION == 1
    assert hashlib.sha256(draw_block(classes, 0, "test", 1).tobytes()).hexdigest() == digest


def test_hundred_classes_are_all_combinations() -> None:
    names = [class_name(100, number) for number in range(100)]
    assert len(set(names)) == 100
    for place, parts in enumerate((SHAPES, PATTERNS)):
        found = [name.split(", ")[place] for name in names]
        assert {part: found.count(part) for part in parts} == dict.fromkeys(parts, 100 // len(parts))


def test_labels_belong_to_the_images() -> None:
    """Middles in the red pair are redder than those in the blue one."""
    source = Textures("x", 100, train=4 * BLOCK)
    middles = images(source)[:, :, 12:20, 12:20].astype(float).mean(axis=(2, 3))
    redness, pair = middles[:, 0] - middles[:, 2], source.targets("train") // 20
    assert redness[pair == 0].mean() > redness[pair == 1].mean() + 30


def test_no_two_images_are_alike_and_none_is_flat() -> None:
    drawn = images(Textures("x", 10, train=BLOCK)).reshape(BLOCK, -1)
    assert len(np.unique(drawn, axis=0)) == BLOCK
    assert drawn.std(axis=1).min() > 5
