from __future__ import annotations

import hashlib

import numpy as np
import pytest

from escala.data import digits, generated
from escala.data.digits import BLOCK, Digits, draw_block
from escala.data.ink import SIDE, squared_distance
from escala.data.strokes import STYLES, segments, style_limits


def images(source: Digits, part: str = "train") -> np.ndarray:
    return np.concatenate(list(source.blocks(part)))


def test_shapes_and_types() -> None:
    source = Digits(train=730, test=120)
    for part, rows in (("train", 730), ("test", 120)):
        drawn = images(source, part)
        assert (drawn.shape, drawn.dtype) == ((rows, 28, 28), np.uint8)
        targets = source.targets(part)
        assert (targets.shape, targets.dtype) == ((rows,), np.int64)


def test_a_row_depends_on_seed_part_and_number_alone() -> None:
    small, large = Digits(train=120), Digits(train=1100)
    np.testing.assert_array_equal(images(small), images(large)[:120])
    np.testing.assert_array_equal(small.targets("train"), large.targets("train")[:120])
    assert not np.array_equal(images(small), images(Digits(test=120), "test"))
    assert not np.array_equal(images(small), images(Digits(train=120, seed=1)))


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    source = Digits(train=2 * BLOCK + 1)
    one_by_one = np.concatenate([draw_block(0, "train", number) for number in range(3)])[: source.train]
    monkeypatch.setattr(generated.os, "cpu_count", lambda: threads)
    monkeypatch.setattr(generated, "_THREADS", threads)
    np.testing.assert_array_equal(images(source), one_by_one)


def test_known_bytes() -> None:
    """These bytes are the same on every machine; a change of them needs a new REVISION."""
    drawn = draw_block(0, "train", 0).tobytes() + draw_block(0, "test", 3).tobytes()
    assert digits.REVISION == 1
    assert hashlib.sha256(drawn).hexdigest() == "ef48feb7909ff85d4bba309bbe7170ceb60355124d66714287b3a326e49188fb"


def test_every_block_holds_every_digit_equally_often() -> None:
    targets = Digits(train=2 * BLOCK).targets("train")
    assert np.bincount(targets[:BLOCK]).tolist() == [BLOCK // 10] * 10
    assert np.bincount(targets[BLOCK:]).tolist() == [BLOCK // 10] * 10
    assert not np.array_equal(targets[:BLOCK], targets[BLOCK:])


def test_digits_are_bright_strokes_on_black() -> None:
    drawn = images(Digits(train=BLOCK)).astype(float)
    ink = (drawn > 100).mean(axis=(1, 2))
    assert (ink > 0.01).all()
    assert (ink < 0.4).all()
    assert (drawn.max(axis=(1, 2)) > 100).all()
    # The frame around the digit is nearly black on the whole.
    assert drawn[:, [0, -1]].mean() < 10


def test_labels_belong_to_the_images() -> None:
    """The nearest of the other rows mostly shows the same digit: far above the one in ten of chance."""
    source = Digits(train=BLOCK)
    flat = images(source).reshape(BLOCK, -1).astype(np.float64)
    far = (flat**2).sum(1)[:, None] + (flat**2).sum(1) - 2 * flat @ flat.T
    np.fill_diagonal(far, np.inf)
    targets = source.targets("train")
    assert (targets[far.argmin(1)] == targets).mean() > 0.5


def test_no_two_images_are_alike() -> None:
    drawn = images(Digits(train=2 * BLOCK, test=BLOCK))
    assert len(np.unique(drawn.reshape(len(drawn), -1), axis=0)) == len(drawn)


def test_leaving_off_in_the_middle_is_clean() -> None:
    blocks = Digits(train=20 * BLOCK).blocks("train")
    next(blocks)
    blocks.close()
    assert next(blocks, None) is None


def test_squared_distance_against_the_plain_formula() -> None:
    drawn = np.random.default_rng(0)
    starts = drawn.uniform(-3, 30, (3, 2, 5)).astype(np.float32)
    ends = drawn.uniform(-3, 30, (3, 2, 5)).astype(np.float32)
    ends[1, :, 2] = starts[1, :, 2]
    counts = np.array([3, 3, 2, 1, 0])
    found = squared_distance(starts, ends, counts)
    for image, count in enumerate(counts):
        for y in range(SIDE):
            for x in range(SIDE):
                nearest = 1e6
                for segment in range(count):
                    start, step = starts[segment, :, image].astype(float), ends[segment, :, image].astype(float)
                    step = step - start
                    part = np.clip((np.array([x, y]) - start) @ step / max(step @ step, 1e-12), 0, 1)
                    nearest = min(nearest, ((np.array([x, y]) - start - part * step) ** 2).sum())
                assert found[y, x, image] == pytest.approx(nearest, rel=1e-3, abs=1e-3)


def test_curves_pass_through_their_control_points() -> None:
    made = segments()
    for row, style in enumerate(STYLES):
        ends = np.concatenate([made.starts[row], made.ends[row]])[:, : len(style.points)] @ np.array(style.points)
        for stroke in style.strokes:
            for point in stroke:
                assert np.abs(ends - style.points[point]).sum(1).min() < 1e-6
        assert not made.starts[row, made.counts[row] :].any()


def test_every_digit_has_a_style_for_every_draw() -> None:
    limits = style_limits(10)
    for digit in range(10):
        for drawn in (0.0, 0.3, 0.7, np.nextafter(1, 0)):
            assert STYLES[np.count_nonzero(drawn >= limits[digit])].digit == digit
