"""Folders of images: classes and their numbers, parts, skipping, and the scan that lists everything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from image_files import encoded, promised, write_flat, write_parts
from PIL import Image

from escala.data import RECOGNISERS, find
from escala.data.base import Request
from escala.data.check import check_source
from escala.data.checked import Faults
from escala.data.image_folder import ImageFolder, recognise
from escala.data.survey import survey
from escala.terms.errors import EscalaError, Exit


def source(folder: Path, **settings: Any) -> ImageFolder:
    return ImageFolder(folder.name, folder, **settings)


def refused(folder: Path, **settings: Any) -> EscalaError:
    with pytest.raises(EscalaError) as caught:
        survey(source(folder, **settings), Request(str(folder)))
    assert caught.value.exit in (Exit.DATA, Exit.CONFIG)
    return caught.value


def silent(*_: object) -> None:
    return None


def test_classes_and_rows_of_parts(tmp_path: Path) -> None:
    parts = {"train": {"b": 3, "a": 2}, "val": {"a": 1, "b": 1}, "test": {"b": 2, "a": 1}}
    found = source(write_parts(tmp_path, parts))
    facts = found.facts()
    assert (facts.class_names, facts.classes, facts.shape, facts.dtype) == (("a", "b"), 2, (6, 8), "uint8")
    assert found.parts() == ("train", "test", "validation")
    assert {part: np.bincount(found.targets(part)).tolist() for part in found.parts()} == {
        "train": [2, 3],
        "test": [1, 2],
        "validation": [1, 1],
    }
    described = survey(found, Request("x")).description
    assert described.rows == {"train": 5, "validation": 2, "test": 3}
    assert described.digest == survey(source(tmp_path), Request("x")).description.digest


def test_rows_belong_to_their_targets(tmp_path: Path) -> None:
    for part in ("train", "test"):
        for name, value in (("a", 10), ("b", 200)):
            write_parts(tmp_path, {part: {name: 0}})
            for number in range(70):
                image = Image.fromarray(np.full((3, 4, 3), value + number % 3, np.uint8))
                image.save(tmp_path / part / name / f"{number}.png")
    found = source(tmp_path)
    rows = np.concatenate(list(found.blocks("train")))
    assert rows.shape == (140, 3, 3, 4)
    assert ((rows.mean(axis=(1, 2, 3)) > 100) == (found.targets("train") == 1)).all()


def test_a_flat_folder_is_split_evenly_by_seed(tmp_path: Path) -> None:
    folder = write_flat(tmp_path, {"a": 100, "b": 100, "c": 50})
    found = source(folder)
    rows = {part: np.bincount(found.targets(part)) for part in found.parts()}
    assert {part: int(counts.sum()) for part, counts in rows.items()} == {"train": 213, "test": 32, "validation": 5}
    assert all((abs(counts - counts.sum() * np.array([0.4, 0.4, 0.2])) <= 1).all() for counts in rows.values())
    again, other = source(folder), source(folder, seed=1)
    assert (next(again.blocks("train")) == next(found.blocks("train"))).all()
    assert (next(other.blocks("train")) != next(found.blocks("train"))).any()


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"train": {"a": 1, "b": 1, "c": 1}, "val": {"a": 1, "b": 0, "c": 1}}, "val has no image of b"),
        ({"train": {"a": 1, "b": 1, "c": 1}, "val": {"a": 1, "c": 1}}, "val has no image of b"),
        ({"train": {"a": 1, "b": 0, "c": 1}, "val": {"a": 1, "b": 1, "c": 1}}, "train has no image of b"),
        ({"train": {"a": 1, "c": 1}, "val": {"a": 1, "b": 1, "c": 1}}, "val has classes that train lacks: b"),
    ],
)
def test_classes_that_parts_lack_are_listed(tmp_path: Path, parts: Any, said: str) -> None:
    error = refused(write_parts(tmp_path, parts))
    assert error.code == "DATA-CLASS"
    assert said in error.what


def test_allow_empty_keeps_the_training_numbers(tmp_path: Path) -> None:
    parts = {"train": {"a": 2, "b": 2, "c": 2}, "val": {"a": 1, "b": 0, "c": 1}, "test": {"c": 2}}
    found = source(write_parts(tmp_path, parts), allow_empty=True)
    assert found.facts().class_names == ("a", "b", "c")
    assert sorted(found.targets("validation")) == [0, 2]
    assert found.targets("test").tolist() == [2, 2]


@pytest.mark.parametrize("train_b", [{}, {"b": 0}])
def test_allow_empty_takes_no_class_that_was_not_learnt(tmp_path: Path, train_b: dict[str, int]) -> None:
    parts = {"train": {"a": 1, "c": 1} | train_b, "val": {"a": 1, "b": 1, "c": 1}}
    assert refused(write_parts(tmp_path, parts), allow_empty=True).code == "DATA-CLASS"


def test_an_empty_class_of_a_flat_folder(tmp_path: Path) -> None:
    folder = write_flat(tmp_path, {"a": 20, "b": 0, "c": 20})
    assert "no image of b" in refused(folder).what
    assert source(folder, allow_empty=True).facts().class_names == ("a", "b", "c")
    assert set(source(folder, allow_empty=True).targets("train").tolist()) == {0, 2}


def test_damage_stops_before_use(tmp_path: Path) -> None:
    folder = write_flat(tmp_path, {"a": 20, "b": 20}, size=(64, 64))
    path = folder / "b" / "0003.png"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    error = refused(folder)
    assert (error.code, error.where) == ("DATA-IMG", str(path))
    assert "class b" in error.what
    path.write_bytes(promised(60_000, 60_000))
    assert refused(folder).code == "DATA-HUGE"


def test_skipping_makes_one_sorted_list(tmp_path: Path) -> None:
    folder = write_flat(tmp_path, {"b": 100, "a": 100})
    for name in ("b/0007.png", "a/0090.png"):
        (folder / name).write_bytes(b"")
    found = source(folder, on_bad="skip")
    assert found.skipped == ("a/0090.png", "b/0007.png")
    assert found.facts().skipped == 2
    described = survey(found, Request("x")).description
    assert (sum(described.rows.values()), described.skipped) == (198, 2)
    (folder / "a" / "0091.png").write_bytes(b"")
    error = refused(folder, on_bad="skip")
    assert error.code == "DATA-IMG"
    assert "3 of 200" in error.what


def test_unlike_sizes_say_which_and_how_to_prepare(tmp_path: Path) -> None:
    folder = write_flat(tmp_path / "my fish", {"a": 20, "b": 20})
    (folder / "a" / "0001.png").write_bytes(encoded(0, size=(9, 6), mode="RGB"))
    error = refused(folder)
    assert error.code == "DATA-IMG"
    assert "39 of 8x6 grey, 1 of 9x6 colour" in error.what
    assert f"escala data prepare '{folder}' --size 8x6 --out FILE" in error.next_step


def test_scan_lists_everything(tmp_path: Path) -> None:
    parts = {"train": {"a": 4, "b": 4, "c": 4}, "val": {"a": 2, "b": 2}}
    folder = write_parts(tmp_path, parts, size=(32, 32))
    whole = (folder / "train" / "a" / "0000.png").read_bytes()
    (folder / "train" / "a" / "0000.png").write_bytes(b"")
    (folder / "train" / "b" / "0001.png").write_bytes(promised(60_000, 60_000))
    (folder / "val" / "b" / "0001.png").write_bytes(whole[:-1])
    told = list[tuple[str, int, int | None]]()
    faults = Faults()
    found = source(folder).scan(faults, lambda *step: told.append(step), strict=True)
    assert [fault.code for fault in faults.first] == ["DATA-CLASS", "DATA-IMG", "DATA-HUGE", "DATA-IMG"]
    assert faults.first[3].where == str(folder / "val" / "b" / "0001.png")
    assert [(part.part, part.rows, part.per_class) for part in found.parts] == [
        ("train", 12, (4, 4, 4)),
        ("test", 4, (2, 2, 0)),
    ]
    assert found.sizes == {"32x32 grey": 14}
    assert told[-1] == ("test", 4, 4)
    faults = Faults()
    source(folder).scan(faults, silent, strict=False)
    assert faults.count == 3


def test_check_uses_the_scan(tmp_path: Path) -> None:
    folder = write_flat(tmp_path, {"a": 20, "b": 20})
    found = check_source("x", source(folder), silent)
    assert found.sound
    assert found.sizes == {"8x6 grey": 40}
    for name in ("a/0001.png", "b/0002.png"):
        (folder / name).write_bytes(b"no image")
    found = check_source("x", source(folder), silent)
    assert found.fault_count == 2


def test_is_recognised_by_its_images(tmp_path: Path) -> None:
    assert recognise in RECOGNISERS
    flat = write_flat(tmp_path / "flat", {"a": 5, "b": 5})
    parts = write_parts(tmp_path / "parts", {"train": {"a": 1, "b": 1}, "test": {"a": 1, "b": 1}})
    for folder in (flat, parts):
        assert isinstance(find(str(folder), {}), ImageFolder)
    (tmp_path / "text" / "train" / "pos").mkdir(parents=True)
    (tmp_path / "text" / "train" / "pos" / "1.txt").write_text("good")
    assert recognise(tmp_path / "text") is None
    assert recognise(tmp_path / "none") is None


def test_other_files_and_deeper_folders(tmp_path: Path) -> None:
    folder = write_flat(tmp_path, {"a": 10, "b": 10, "b/more": 3, ".hidden": 2})
    (folder / "a" / "notes.txt").write_text("x")
    (folder / "a" / ".0001.png").write_text("x")
    found = source(folder)
    assert found.facts().class_names == ("a", "b")
    assert sum(len(found.targets(part)) for part in found.parts()) == 23


def test_a_class_may_be_called_like_a_part(tmp_path: Path) -> None:
    assert source(write_flat(tmp_path, {"test": 10, "train": 10})).facts().class_names == ("test", "train")


@pytest.mark.parametrize(
    "parts",
    [{"train": {"a": 1, "b": 1}}, {"val": {"a": 1, "b": 1}, "test": {"a": 1, "b": 1}}],
)
def test_parts_that_are_missing(tmp_path: Path, parts: Any) -> None:
    assert refused(write_parts(tmp_path, parts)).code == "DATA-PATH"


def test_a_part_under_two_names(tmp_path: Path) -> None:
    two = {"a": 1, "b": 1}
    assert refused(write_parts(tmp_path, {"train": two, "val": two, "valid": two})).code == "DATA-PATH"


def test_a_folder_that_holds_itself(tmp_path: Path) -> None:
    folder = write_flat(tmp_path, {"a": 3, "b": 3})
    (folder / "a" / "up").symlink_to(folder / "a")
    error = refused(folder)
    assert error.code == "DATA-PATH"
    assert "link" in error.what


def test_one_class_is_no_set(tmp_path: Path) -> None:
    assert "one class only, a" in refused(write_flat(tmp_path, {"a": 30})).what
