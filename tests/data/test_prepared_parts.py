"""Sets with rows for validation of their own, targets that are no classes, and a side file for judging."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from escala import data
from escala.data.base import Facts, Form, Inputs, Part, Request, Source, Targets
from escala.data.prepared import Prepared, load, prepare
from escala.terms.errors import EscalaError

ROWS: dict[Part, int] = {"train": 24, "validation": 5, "test": 7}


@dataclass(frozen=True)
class Spans(Source):
    """Rows of three tokens; the first is the row's number, in tens of thousands by part."""

    published: bool = True

    def facts(self) -> Facts:
        return Facts("spans", "real", "here", (3,), "int32", 0, kind="questions")

    def parts(self) -> tuple[Part, ...]:
        return ("train", "validation", "test") if self.published else ("train", "test")

    def targets(self, part: Part) -> Targets:
        return np.stack([np.arange(ROWS[part])] * 3, axis=1).astype(np.int64)

    def blocks(self, part: Part) -> Iterator[Inputs]:
        first = 10_000 * list(ROWS).index(part)
        numbers = first + np.arange(ROWS[part])
        yield np.stack([numbers] * 3, axis=1).astype(np.int32)

    def side(self, part: Part) -> Iterator[bytes]:
        for number in range(ROWS[part]):
            yield f"{part} {number}\n".encode()


@pytest.fixture(params=[True, False])
def published(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    has_own: bool = request.param
    monkeypatch.setitem(data.SETS, "spans", lambda _name, _environ: Spans(has_own))
    return has_own


def made(cache: Path, validation: float | None) -> Prepared:
    return prepare(Request("spans", validation, form=Form("questions")), cache, {}, lambda _: None)


def test_published_validation_rows_are_taken_and_else_a_twelfth(published: bool, tmp_path: Path) -> None:
    prepared = made(tmp_path, None)
    splits = load(prepared.folder)
    wanted = {"train": 24, "validation": 5, "test": 7} if published else {"train": 22, "validation": 2, "test": 7}
    assert prepared.description.rows == {name: len(split.inputs) for name, split in splits.items()} == wanted
    assert (splits["validation"].inputs[:, 0] >= 10_000).all() == published
    assert splits["test"].targets.shape == (7, 3)


def test_a_share_that_was_asked_for_is_held_out_of_the_training_rows(published: bool, tmp_path: Path) -> None:
    splits = load(made(tmp_path, 0.25).folder)
    assert {name: len(split.inputs) for name, split in splits.items()} == {"train": 18, "validation": 6, "test": 7}
    seen = np.concatenate([splits["train"].inputs[:, 0], splits["validation"].inputs[:, 0]])
    assert sorted(seen.tolist()) == list(range(24))


def test_side_files_go_with_the_rows_that_are_judged(published: bool, tmp_path: Path) -> None:
    splits = load(made(tmp_path, None).folder)
    assert splits["train"].side is None
    for name, part in (("validation", "validation" if published else "train"), ("test", "test")):
        side = splits[name].side
        assert side is not None
        # The last target is the row's line in the side file, whatever rows were held out.
        lines = side.read_text().splitlines()
        assert [lines[number] for number in splits[name].targets[:, 2]] == [
            f"{part} {number}" for number in splits[name].targets[:, 2]
        ]


def test_a_damaged_side_file_is_made_anew(published: bool, tmp_path: Path) -> None:
    folder = made(tmp_path, None).folder
    before = (folder / "test-side").read_bytes()
    (folder / "test-side").write_bytes(before[:-1] + b"?")
    assert made(tmp_path, None).folder == folder
    assert (folder / "test-side").read_bytes() == before


def test_a_workload_that_takes_another_kind_is_refused(published: bool, tmp_path: Path) -> None:
    with pytest.raises(EscalaError, match="holds questions") as caught:
        prepare(Request("spans"), tmp_path, {}, lambda _: None)
    assert caught.value.code == "DATA-KIND"
