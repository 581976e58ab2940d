from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from escala.data import find, generated
from escala.data.base import Source
from escala.data.generated import block_targets, draw_blocks, draws, pick, sizes, stream
from escala.data.texts import TextSource
from escala.terms.errors import EscalaError

NAMES = {
    "synthetic": "images",
    "synthetic-fish": "images",
    "synthetic-cifar10": "images",
    "synthetic-cifar100": "images",
    "synthetic-imdb": "labelled text",
    "synthetic-wikitext": "text",
    "synthetic-squad": "questions",
}


@given(st.integers(1, 9_999_999), st.integers(1, 9_999_999))
def test_sizes(train: int, test: int) -> None:
    assert sizes("some-set", train, test) == (train, test)
    assert sizes(f"some-set:{train}+{test}", 5, 7) == (train, test)


@given(st.text(alphabet="0123456789+-. ²x:", max_size=12))
def test_anything_else_is_refused(size: str) -> None:
    assume(re.fullmatch(r"0*[1-9][0-9]*\+0*[1-9][0-9]*", size) is None)
    with pytest.raises(EscalaError) as caught:
        sizes(f"some-set:{size}", 5, 7, of="texts")
    assert caught.value.code == "CFG-RANGE"
    assert caught.value.what == f"some-set:{size} names no size of a generated set"
    assert "some-set:TRAIN+TEST" in caught.value.expected
    assert caught.value.expected.endswith("texts")


@pytest.mark.parametrize(("name", "kind"), NAMES.items())
def test_every_set_is_found_by_its_name(name: str, kind: str) -> None:
    for asked in (name, f"{name}:30+20"):
        source = find(asked, {})
        facts = source.facts()
        assert (facts.name, facts.origin, facts.kind) == (asked, "generated", kind)
    assert "30 + 20" in facts.where
    assert "seed 0" in facts.where
    if isinstance(source, Source):
        assert [len(source.targets(part)) for part in ("train", "test")] == [30, 20]
        assert sum(map(len, source.blocks("test"))) == 20
    else:
        assert [len(list(source.documents(part))) for part in ("train", "test")] == [30, 20]
    with pytest.raises(EscalaError) as caught:
        find(f"{name}:30", {})
    assert caught.value.code == "CFG-RANGE"


def test_the_digest_of_texts_is_that_of_their_settings() -> None:
    seen = set()
    for asked in ("synthetic-imdb", "synthetic-imdb:30+20", "synthetic-wikitext:30+20", "synthetic-squad:30+20"):
        source = find(asked, {})
        assert isinstance(source, TextSource)
        assert source.digest() == find(asked, {}).digest()  # type: ignore[union-attr]
        seen.add(source.digest())
    assert len(seen) == 4
    assert all(len(digest) == 64 for digest in seen)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("rows", [1, 4, 5, 99, 100])
def test_blocks_come_in_order_whatever_the_threads(monkeypatch: pytest.MonkeyPatch, threads: int, rows: int) -> None:
    monkeypatch.setattr(generated.os, "cpu_count", lambda: threads)
    blocks = list(draw_blocks(lambda number: np.arange(4) + 4 * number, rows, 4, "test"))
    assert all(len(block) == 4 for block in blocks[:-1])
    np.testing.assert_array_equal(np.concatenate(blocks), np.arange(rows))


def test_streams_differ_by_seed_part_and_number() -> None:
    firsts = {
        stream(seed, part, number).random() for seed in (0, 1) for part in generated._PARTS for number in (0, 1)
    }
    assert len(firsts) == 12


def test_targets_are_balanced_and_begin_alike() -> None:
    targets = block_targets(0, "train", 100, 20, 5)
    assert np.bincount(targets).tolist() == [20] * 5
    np.testing.assert_array_equal(block_targets(0, "train", 33, 20, 5), targets[:33])


def test_draws_and_picks() -> None:
    drawn = list(itertools.islice(draws(stream(0, "train", 0)), 3000))
    assert drawn == stream(0, "train", 0).random(3000).tolist()
    picked = [pick(iter([number]), "abcd") for number in (0.0, 0.3, 0.5, np.nextafter(1, 0))]
    assert picked == ["a", "b", "c", "d"]
