"""What the generated sets share: their sizes, their streams of random numbers, and blocks drawn ahead of the reader.

A row depends on the seed, the part and its own number alone: a smaller set is the beginning of a larger one, and
neither the number of threads nor the machine changes a byte. So draws are only added, multiplied, divided, compared
and their square roots taken, in float32: the floating-point standard rounds these exactly.
"""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from escala.data.base import Inputs, Part, Targets
from escala.terms.errors import EscalaError

Floats = NDArray[np.float32]
Draws = Iterator[float]
"""Numbers from 0 up to 1, one after another."""
T = TypeVar("T")

_THREADS = 4
_PARTS: tuple[Part, ...] = ("train", "test", "validation")
"""A part's place is in its streams' seeds: a new one goes to the end."""


def sizes(name: str, train: int, test: int, *, of: str = "rows") -> tuple[int, int]:
    """How many training and test rows a generated set's name asks for: `NAME` the given, or `NAME:TRAIN+TEST`.

    Raises EscalaError CFG-RANGE where what follows the colon is not two positive numbers of at most seven digits.
    """
    base, colon, size = name.partition(":")
    if not colon:
        return train, test
    first, plus, second = size.partition("+")
    if not (plus and _is_count(first) and _is_count(second)):
        raise EscalaError(
            "CFG-RANGE",
            "workload.data",
            f"{name} names no size of a generated set",
            expected=f"{base}:TRAIN+TEST, from 1+1 to 9999999+9999999 {of}",
            next_step=f"write {base} or, for example, {base}:6000+1000",
        )
    return int(first), int(second)


def stream(seed: int, part: Part, number: int) -> np.random.Generator:
    """The random numbers of one block or document."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, _PARTS.index(part), number])))


def draw_blocks(draw: Callable[[int], Inputs], rows: int, block: int, name: str) -> Iterator[Inputs]:
    """`rows` rows from `draw(number)`, which gives `block` rows each, by a few threads ahead of the reader."""
    threads = min(_THREADS, os.cpu_count() or 1)
    blocks = -(-rows // block)
    waiting: deque[Future[Inputs]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix=name) as pool:
        for number in range(blocks):
            waiting.append(pool.submit(draw, number))
            if len(waiting) > 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            drawn = waiting.popleft().result()
            yield drawn if waiting else drawn[: rows - block * (blocks - 1)]


def block_targets(seed: int, part: Part, rows: int, block: int, classes: int) -> Targets:
    """Every row's class, without drawing a row: what `shuffled_classes` gives for the streams of all blocks."""
    numbers = range(-(-rows // block))
    return np.concatenate([shuffled_classes(stream(seed, part, number), block, classes) for number in numbers])[:rows]


def shuffled_classes(numbers: np.random.Generator, block: int, classes: int) -> Targets:
    """[block] classes, each equally often; the first draw from every stream."""
    return np.argsort(numbers.random(block), kind="stable").astype(np.int64) % classes


def between(numbers: np.random.Generator, rows: int, low: float, high: float) -> Floats:
    """[rows] numbers, evenly spread from `low` to `high`."""
    return np.float32(low) + np.float32(high - low) * numbers.random(rows, dtype=np.float32)


def bell(numbers: np.random.Generator, shape: tuple[int, ...], reach: float) -> Floats:
    """Numbers in a bell around 0 that end at plus and minus `reach`."""
    first, second = numbers.random(shape, dtype=np.float32), numbers.random(shape, dtype=np.float32)
    return (first + second - np.float32(1)) * np.float32(reach)


def turned(half: Floats) -> tuple[Floats, Floats]:
    """Cosine and sine of the angle the tangent of whose HALF is given: exactly rounded, unlike a library's own."""
    scale = 1 + half * half
    return (1 - half * half) / scale, (half + half) / scale


def draws(numbers: np.random.Generator) -> Draws:
    """The stream's numbers one by one, for texts."""
    while True:
        yield from numbers.random(1024).tolist()


def pick(draw: Draws, options: Sequence[T]) -> T:
    """One of the options, each as likely."""
    return options[int(next(draw) * len(options))]


def settings_digest(settings: str) -> str:
    """A sha256 in hex over the settings that decide every byte of a generated set."""
    return hashlib.sha256(settings.encode()).hexdigest()


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 7 and int(text) > 0
