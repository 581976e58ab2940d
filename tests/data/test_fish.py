from __future__ import annotations

import hashlib

import numpy as np
import pytest

from escala.data import fish, generated
from escala.data.base import Request
from escala.data.fish import BLOCK, HEIGHT, WIDTH, Fish, draw_block, find
from escala.data.outlines import LANDMARKS, MEASURES, PIECES, SPECIES, landmarks, measures, outlined
from escala.data.split import split_rows
from escala.terms.errors import EscalaError


def images(source: Fish, part: str = "train") -> np.ndarray:
    return np.concatenate(list(source.blocks(part)))


def test_shapes_types_and_range() -> None:
    source = Fish(train=BLOCK + 5, test=3)
    for part, rows in (("train", BLOCK + 5), ("test", 3)):
        drawn, targets = images(source, part), source.targets(part)
        assert (drawn.shape, drawn.dtype) == ((rows, HEIGHT, WIDTH), np.float16)
        assert (targets.shape, targets.dtype) == ((rows,), np.int64)
    facts = source.facts()
    assert (facts.shape, facts.dtype, facts.classes) == ((148, 197), "float16", 9)
    assert facts.class_names == SPECIES
    assert (drawn.min(), drawn.max()) == (0, 1)


def test_the_whole_set_splits_as_published() -> None:
    source = Fish()
    targets = {part: source.targets(part) for part in ("train", "test")}
    assert np.bincount(targets["train"]).tolist() == [870] * 9
    assert np.bincount(targets["test"]).tolist() == [130] * 9
    kept = split_rows(targets["train"], Request("synthetic-fish", validation=180 / 7830))
    assert (len(kept.train), len(kept.validation), len(targets["test"])) == (7650, 180, 1170)
    assert np.bincount(targets["train"][kept.validation]).tolist() == [20] * 9


def test_a_row_depends_on_seed_part_and_number_alone() -> None:
    small, large = Fish(train=7), Fish(train=BLOCK + 1)
    np.testing.assert_array_equal(images(small), images(large)[:7])
    np.testing.assert_array_equal(small.targets("train"), large.targets("train")[:7])
    assert not np.array_equal(images(small), images(Fish(test=7), "test"))
    assert not np.array_equal(images(small), images(Fish(train=7, seed=1)))


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generated.os, "cpu_count", lambda: 3)
    one_by_one = np.concatenate([draw_block(0, "train", number) for number in range(2)])
    np.testing.assert_array_equal(images(Fish(train=2 * BLOCK)), one_by_one)


def test_the_same_fish_in_another_resolution() -> None:
    small, large = (images(find(f"synthetic-fish@{size}:9+1", {})) for size in ("49x37", "98x74"))
    assert (small.shape, large.shape) == ((9, 37, 49), (9, 74, 98))
    halved = large.astype(np.float32).reshape(9, 37, 2, 49, 2).mean((2, 4))
    assert abs(halved - small.astype(np.float32)).mean() < 0.01
    facts = find("synthetic-fish@49x37", {}).facts()
    assert facts.shape == (37, 49)
    assert "49 x 37" in facts.where
    assert find("synthetic-fish@197x148", {}).facts().where == Fish().facts().where


@pytest.mark.parametrize("size", ["", "x", "49", "49x", "0x37", "49x-3", "4x37", "49x5000", "4.5x37", "\u00b2x9"])
def test_a_resolution_that_is_none_is_refused(size: str) -> None:
    with pytest.raises(EscalaError, match="names no resolution") as caught:
        find(f"synthetic-fish@{size}", {})
    assert caught.value.code == "CFG-RANGE"


def test_known_bytes() -> None:
    """These bytes are the same on every machine; a change of them needs a new REVISION."""
    assert fish.REVISION == 1
    assert (
        hashlib.sha256(draw_block(0, "test", 1).tobytes()).hexdigest()
        == "625bc7fb3c045dee5319dd672b4898c5f653a57d3360273282822dfbb122dd2b"
    )


def test_a_fish_fills_some_of_its_picture() -> None:
    covered = draw_block(0, "train", 0).astype(float).mean(axis=(1, 2))
    assert covered.min() > 0.01
    assert covered.max() < 0.5


def test_labels_belong_to_the_images() -> None:
    """A bream is the deepest of the fish, an anchovy or a hake among the flattest."""
    source = Fish(train=4 * BLOCK)
    covered, targets = images(source).astype(np.float32).mean(axis=(1, 2)), source.targets("train")
    mean = {name: covered[targets == number].mean() for number, name in enumerate(SPECIES)}
    assert max(mean, key=mean.__getitem__) == "bream"
    assert mean["bream"] > 1.5 * max(mean["anchovy"], mean["hake"], mean["mackerel"])


def test_no_two_images_are_alike() -> None:
    drawn = images(Fish(train=BLOCK, test=BLOCK)).reshape(BLOCK, -1)
    assert len(np.unique(drawn, axis=0)) == BLOCK


def test_outlines_pass_through_their_landmarks_and_close() -> None:
    species = np.arange(9)
    points = landmarks(measures(species, np.zeros((9, len(MEASURES)), np.float32)), np.ones((9, 3), np.float32))
    outline = outlined(points)
    assert outline.shape == (9, LANDMARKS * PIECES, 2)
    np.testing.assert_array_equal(outline[:, ::PIECES], points)
    # No step of the outline, that from its end to its beginning included, is long.
    steps = np.abs(outline - np.roll(outline, 1, axis=1)).max(axis=(1, 2))
    assert steps.max() < 0.15


def test_fins_stand_out_as_far_as_they_are_raised() -> None:
    fish_measures = measures(np.arange(9), np.zeros((9, len(MEASURES)), np.float32))
    raised, folded = (landmarks(fish_measures, np.full((9, 3), number, np.float32)) for number in (1, 0))
    moved = np.abs(raised - folded).max(axis=(0, 2)) > 0.01
    assert np.flatnonzero(moved).tolist() == [4, 5, 7, 10, 12, 15, 19]
