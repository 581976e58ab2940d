"""Preparing a folder of images: pixels, parts, going on, skipping, and what is left behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from image_files import encoded, promised, write_flat, write_parts
from PIL import Image

from escala.data import image_chunks, image_prepare
from escala.data.image_prepare import prepare_images
from escala.data.prepared_images import PreparedImages, read_layout
from escala.terms.errors import EscalaError, Exit

SIZE = (5, 4)


def silent(*_: object) -> None:
    return None


def prepared(folder: Path, out: Path, **settings: Any) -> PreparedImages:
    plain = {"size": SIZE, "grey": True, "dtype": "uint8", "progress": silent, "workers": 1}
    prepare_images(folder, out, **(plain | settings))
    return PreparedImages("x", out)


def refused(folder: Path, out: Path, **settings: Any) -> EscalaError:
    with pytest.raises(EscalaError) as caught:
        prepared(folder, out, **settings)
    assert not out.exists()
    return caught.value


def rows_of(found: PreparedImages) -> list[list[int]]:
    rows = np.concatenate([block for part in found.parts() for block in found.blocks(part)])
    return sorted(rows.reshape(len(rows), -1).tolist())


def pillow_alone(folder: Path, mode: str = "L") -> list[list[int]]:
    rows = list[list[int]]()
    for path in folder.rglob("*.png"):
        with Image.open(path) as image:
            scaled = np.asarray(image.convert(mode).resize(SIZE, Image.Resampling.BILINEAR))
        rows.append((scaled if mode == "L" else scaled.transpose(2, 0, 1)).reshape(-1).tolist())
    return sorted(rows)


@pytest.mark.parametrize("grey", [True, False])
def test_pixels_are_pillow_s(tmp_path: Path, grey: bool) -> None:
    folder = write_flat(tmp_path / "set", {"a": 40, "b": 40}, mode="RGB")
    (folder / "a" / "0000.png").write_bytes(encoded(0, size=(30, 7)))
    found = prepared(folder, tmp_path / "out", grey=grey)
    assert rows_of(found) == pillow_alone(folder, "L" if grey else "RGB")
    assert found.facts().shape == ((4, 5) if grey else (3, 4, 5))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "set"]


@pytest.mark.parametrize("size", [(5, 4), (5, 3)])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_floats_go_from_0_to_1(tmp_path: Path, dtype: str, size: tuple[int, int]) -> None:
    folder = write_flat(tmp_path / "set", {"a": 20, "b": 20})
    plain = prepared(folder, tmp_path / "u", size=size)
    scaled = prepared(folder, tmp_path / "f", size=size, dtype=dtype)
    assert scaled.facts().dtype == dtype
    (whole,), (part,) = plain.blocks("train"), scaled.blocks("train")
    assert (part == (whole / 255).astype(dtype)).all()


def test_rows_belong_to_their_targets(tmp_path: Path) -> None:
    for name, value in (("a", 10), ("b", 100), ("c", 200)):
        (tmp_path / "set" / name).mkdir(parents=True)
        for number in range(60):
            Image.fromarray(np.full((6, 6), value + number % 9, np.uint8)).save(
                tmp_path / "set" / name / f"{number}.png"
            )
    found = prepared(tmp_path / "set", tmp_path / "out")
    assert found.parts() == ("train", "test", "validation")
    for part in found.parts():
        rows = np.concatenate(list(found.blocks(part)))
        assert (rows.mean(axis=(1, 2)) // 80 == found.targets(part)).all()
    assert np.bincount(found.targets("train")).tolist() == [51, 51, 51]


def test_parts_as_they_lie(tmp_path: Path) -> None:
    two = {"a": 3, "b": 2}
    found = prepared(write_parts(tmp_path / "set", {"train": two, "val": two, "test": two}), tmp_path / "out")
    assert [np.bincount(found.targets(part)).tolist() for part in found.parts()] == [[3, 2]] * 3
    assert read_layout(tmp_path / "out").metadata["shares"] == "as the folders lie"


def test_the_file_depends_on_the_seed_and_not_on_the_workers(tmp_path: Path) -> None:
    folder = write_flat(tmp_path / "set", {"a": 90, "b": 90})
    out = {
        name: prepared(folder, tmp_path / name, **settings).path.read_bytes()
        for name, settings in {"one": {}, "two": {"workers": 2}, "other": {"seed": 1}}.items()
    }
    assert out["one"] == out["two"]
    assert out["one"] != out["other"]
    assert json.loads(read_layout(tmp_path / "one").metadata["class_names"]) == ["a", "b"]
    first, second = (read_layout(tmp_path / name).metadata for name in ("one", "other"))
    assert (first["seed"], second["seed"]) == ("0", "1")
    assert first["source_digest"] == second["source_digest"]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_damaged_file_ends_it_and_is_named(tmp_path: Path, workers: int) -> None:
    folder = write_flat(tmp_path / "set", {"a": 80, "b": 80})
    (folder / "b" / "0001.png").write_bytes(b"")
    error = refused(folder, tmp_path / "out", workers=workers)
    assert (error.code, error.where) == ("DATA-IMG", str(folder / "b" / "0001.png"))
    (folder / "b" / "0001.png").write_bytes(promised(60_000, 60_000))
    assert refused(folder, tmp_path / "out").code == "DATA-HUGE"


def test_skipping_is_counted_and_kept_in_the_file(tmp_path: Path) -> None:
    folder = write_flat(tmp_path / "set", {"a": 100, "b": 100})
    for name in ("b/0001.png", "a/0099.png"):
        (folder / name).write_bytes(b"\x89PNG")
    found = prepared(folder, tmp_path / "out", on_bad="skip")
    assert found.facts().skipped == 2
    assert json.loads(read_layout(tmp_path / "out").metadata["skipped"]) == ["a/0099.png", "b/0001.png"]
    assert sum(len(found.targets(part)) for part in found.parts()) == 198
    (folder / "a" / "0098.png").write_bytes(b"")
    assert "images are damaged" in refused(folder, tmp_path / "next", on_bad="skip").what
    assert refused(folder, tmp_path / "next").code == "DATA-IMG"


def test_goes_on_where_it_was_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_flat(tmp_path / "set", {"a": 100, "b": 100})
    undisturbed = prepared(folder, tmp_path / "twin").path.read_bytes()
    made = list[str]()

    def counted(job: image_chunks.Job) -> Any:
        made.append(job.out.name)
        return image_chunks.make_chunk(job)

    monkeypatch.setattr(image_prepare, "make_chunk", counted)

    def ended(done: int, total: int) -> None:
        if done == 128:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepared(folder, tmp_path / "out", progress=ended)
    assert len(made) == 2
    assert not (tmp_path / "out").exists()
    # A chunk that a power cut has damaged is made again.
    (first, *_) = (path for path in (tmp_path / ".out.work").rglob("*") if path.name == made[0])
    first.write_bytes(first.read_bytes()[:-1])
    steps = list[tuple[int, int]]()
    prepared(folder, tmp_path / "out", progress=lambda *step: steps.append(step))
    assert len(made) == 2 + 3
    assert steps == [(0, 200), (64, 200), (128, 200), (192, 200), (200, 200)]
    assert (tmp_path / "out").read_bytes() == undisturbed
    assert not (tmp_path / ".out.work").exists()


def test_chunks_of_other_settings_or_files_are_not_used(tmp_path: Path) -> None:
    folder = write_flat(tmp_path / "set", {"a": 80, "b": 80})

    def ended(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepared(folder, tmp_path / "out", progress=ended)
    (folder / "a" / "0003.png").write_bytes(encoded(999, size=(9, 9)))
    assert rows_of(prepared(folder, tmp_path / "out")) == pillow_alone(folder)


def test_files_that_change_meanwhile(tmp_path: Path) -> None:
    folder = write_flat(tmp_path / "set", {"a": 80, "b": 80})

    def meddle(done: int, total: int) -> None:
        if done == total:
            (folder / "a" / "0003.png").write_bytes(encoded(999, size=(9, 9)))

    assert refused(folder, tmp_path / "out", progress=meddle).code == "DATA-CHANGED"


@pytest.mark.parametrize(
    "settings",
    [
        {"dtype": "float64"},
        {"on_bad": "ignore"},
        {"workers": 0},
        {"shares": (0.5, 0.5, 0.0)},
        {"shares": (0.0, 0.5, 0.5)},
    ],
)
def test_settings_that_cannot_be(tmp_path: Path, settings: dict[str, Any]) -> None:
    folder = write_flat(tmp_path / "set", {"a": 10, "b": 10})
    assert refused(folder, tmp_path / "out", **settings).exit == Exit.CONFIG


def test_classes_are_checked_before_anything_is_decoded(tmp_path: Path) -> None:
    folder = write_flat(tmp_path / "set", {"a": 10, "b": 0, "c": 10})
    assert refused(folder, tmp_path / "out").code == "DATA-CLASS"
    assert prepared(folder, tmp_path / "out", allow_empty=True).facts().class_names == ("a", "b", "c")


def test_an_earlier_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    folder = write_flat(tmp_path / "set", {"a": 20, "b": 20})
    (tmp_path / "out").write_bytes(b"earlier")
    (folder / "a" / "0001.png").write_bytes(b"")
    with pytest.raises(EscalaError):
        prepared(folder, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"earlier"


def test_a_result_that_cannot_be_written(tmp_path: Path) -> None:
    folder = write_flat(tmp_path / "set", {"a": 20, "b": 20})
    (tmp_path / "out").mkdir()
    with pytest.raises(EscalaError) as caught:
        prepared(folder, tmp_path / "out")
    assert caught.value.code == "ENV-DISK"
