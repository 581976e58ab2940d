from __future__ import annotations

import io
import os
import pickle
import shutil
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cifar_files import NAMES, ROWS, batch, batches, dumped, opened, refused, write_binary, write_python

from escala.data import RECOGNISERS, SETS, Request, cifar, describe, paths
from escala.data.base import PARTS, Source
from escala.data.check import check
from escala.data.get import get
from escala.data.published import Published, PublishedFile
from escala.terms.errors import EscalaError


@pytest.fixture(autouse=True)
def no_system_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the machine's own data sets out of the search."""
    monkeypatch.setattr(paths, "SYSTEM_FOLDER", tmp_path / "system")


FOLDERS = [
    ("cifar10", "cifar-10-batches-py", 10, write_python),
    ("cifar10", "cifar-10-batches-bin", 10, write_binary),
    ("cifar100", "cifar-100-python", 100, write_python),
    ("cifar100", "cifar-100-binary", 100, write_binary),
]
each_version = pytest.mark.parametrize(("name", "folder", "classes", "write"), FOLDERS)


def check_content(source: Source, classes: int) -> None:
    facts = source.facts()
    assert (facts.shape, facts.dtype, facts.classes, facts.kind) == ((3, 32, 32), "uint8", classes, "images")
    assert facts.class_names == NAMES[classes]
    for part in PARTS:
        found = [value for name, value in batches(classes).items() if name.startswith("test") == (part == "test")]
        blocks = np.concatenate(list(source.blocks(part)))
        assert blocks.dtype == np.uint8
        np.testing.assert_array_equal(blocks, np.concatenate([pixels for pixels, _ in found]).reshape(-1, 3, 32, 32))
        targets = source.targets(part)
        assert targets.dtype == np.int64
        assert targets.tolist() == [label for _, labels in found for label in labels]


@each_version
def test_reads_what_was_written(tmp_path: Path, name: str, folder: str, classes: int, write: Any) -> None:
    inside = write(tmp_path / "place" / folder, classes)
    loose = shutil.copytree(inside, tmp_path / "loose")
    for path in (inside, inside.parent, loose):
        check_content(opened(path), classes)
    for place, told in ((name, f"$ESCALA_DATA/{name}"), (f"{name}/{folder}", f"$ESCALA_DATA/{name}/{folder}")):
        own = tmp_path / place.replace("/", "-")
        shutil.copytree(inside, own / place)
        source = SETS[name](name, {"ESCALA_DATA": str(own)})
        assert isinstance(source, Source)
        check_content(source, classes)
        assert source.facts().where == told
    other = "cifar100" if name == "cifar10" else "cifar10"
    assert SETS[other](other, {"ESCALA_DATA": str(tmp_path / "place")}) is None


@pytest.mark.parametrize("classes", [10, 100])
def test_both_versions_have_one_digest(tmp_path: Path, classes: int) -> None:
    found = [
        describe(Request(str(write(tmp_path / name, classes))), {}, tmp_path / "cache", print)
        for name, write in (("python", write_python), ("binary", write_binary))
    ]
    assert found[0].digest == found[1].digest != ""
    total = ROWS["train"] * (5 if classes == 10 else 1)
    assert sum(found[0].rows.values()) == total + ROWS["test"]


def test_red_comes_first_and_rows_lie_flat(tmp_path: Path) -> None:
    folder = write_binary(tmp_path / "set", 10)
    data = bytearray((folder / "test_batch.bin").read_bytes())
    # Row 1: the label, then 1024 of red, 1024 of green; the second row of pixels begins after 32.
    data[3073] = 7
    data[3073 + 1 : 3073 + 1 + 3072] = bytes(3072)
    data[3073 + 1 + 1024 + 32 + 5] = 200
    (folder / "test_batch.bin").write_bytes(data)
    source = opened(folder)
    image = next(iter(source.blocks("test")))[1]
    assert (source.targets("test")[1], image[1, 1, 5], int(image.sum())) == (7, 200, 200)


@pytest.mark.parametrize("protocol", [2, 4])
def test_files_written_anew_by_python_3(tmp_path: Path, protocol: int) -> None:
    folder = write_python(tmp_path / "set", 10)
    for name, (pixels, labels) in batches(10).items():
        (folder / name).write_bytes(pickle.dumps(batch(name, 10, pixels, labels), protocol))
    (folder / "batches.meta").write_bytes(pickle.dumps({b"label_names": list(NAMES[10])}, protocol))
    check_content(opened(folder), 10)


class Planted:
    def __init__(self, marker: Path) -> None:
        self.marker = str(marker)

    def __reduce__(self) -> Any:
        return os.mkdir, (self.marker,)


@pytest.mark.parametrize(
    ("classes", "names"), [(10, ["data_batch_3", "test_batch", "batches.meta"]), (100, ["meta"])]
)
def test_a_planted_call_is_not_made(tmp_path: Path, classes: int, names: list[str]) -> None:
    for name in names:
        folder = write_python(tmp_path / name, classes)
        (folder / name).write_bytes(pickle.dumps({"labels": Planted(tmp_path / "marker")}, 2))
        error = refused(opened(folder), "SEC-PICKLE")
        assert error.where == str(folder / name)
        assert "posix.mkdir" in error.what
        with pytest.raises(EscalaError) as caught:
            check(str(folder), {}, lambda *_: None)
        assert caught.value.code == "SEC-PICKLE"
    assert not (tmp_path / "marker").exists()


@each_version
def test_a_missing_file(tmp_path: Path, name: str, folder: str, classes: int, write: Any) -> None:
    path = write(tmp_path / folder, classes)
    for missing in [file.name for file in path.iterdir()]:
        if missing in ("readme.html", "coarse_label_names.txt"):
            continue
        os.rename(path / missing, tmp_path / "away")
        error = refused(opened(path), "DATA-PATH")
        assert error.where == str(path)
        assert error.what == f"holds no {missing}"
        os.rename(tmp_path / "away", path / missing)
    check_content(opened(path), classes)


@each_version
def test_a_cut_file(tmp_path: Path, name: str, folder: str, classes: int, write: Any) -> None:
    path = write(tmp_path / folder, classes)
    for file in ("data_batch_2", "test_batch") if classes == 10 else ("train", "test"):
        file += ".bin" if write is write_binary else ""
        whole = (path / file).read_bytes()
        for kept in (0, 1, len(whole) // 2 + 1, len(whole) - 1):
            (path / file).write_bytes(whole[:kept])
            error = refused(opened(path), "DATA-CIFAR")
            assert error.where == str(path / file)
            assert f"has {kept:,} bytes" in error.what
            found = check(str(path), {}, lambda *_: None)
            assert [(fault.where, fault.count) for fault in found.faults] == [(str(path / file), 1)]
        (path / file).write_bytes(whole)
    check_content(opened(path), classes)


def test_a_cut_file_tells_the_expected_size(tmp_path: Path) -> None:
    folder = write_binary(tmp_path / "ten", 10)
    (folder / "data_batch_2.bin").write_bytes(bytes(5000))
    error = refused(opened(folder), "DATA-CIFAR")
    assert error.what == "has 5,000 bytes, which is no number of whole images"
    assert error.expected == "3,073 bytes an image, 30,730,000 in all as published"
    folder = write_python(tmp_path / "hundred", 100)
    whole = (folder / "train").read_bytes()
    (folder / "train").write_bytes(whole[:200_000])
    what = refused(opened(folder), "DATA-CIFAR").what
    assert "expected 614400 bytes" in what
    assert "the file has 200,000 bytes" in what


def test_fewer_rows_than_published_are_noted(tmp_path: Path) -> None:
    notes = opened(write_binary(tmp_path / "set", 100)).facts().notes
    assert notes == (
        "train.bin holds 200 images; 50,000 are published",
        "test.bin holds 40 images; 10,000 are published",
    )


PIXELS, LABELS = batches(10)["test_batch"]
WRONG = [
    ({"labels": LABELS}, "no array `data`"),
    ({"data": "text", "labels": LABELS}, "no array `data`"),
    ({"data": PIXELS}, "no list `labels`"),
    ({"data": PIXELS, "fine_labels": LABELS}, "no list `labels`"),
    ({"data": PIXELS, "labels": LABELS[1:]}, "39 labels"),
    ({"data": PIXELS[:, 1:], "labels": LABELS}, "(40, 3071)"),
    ({"data": PIXELS[:0], "labels": []}, "(0, 3072)"),
    ([], "no dictionary"),
]


@pytest.mark.parametrize(("content", "what"), WRONG)
def test_a_batch_of_another_form(tmp_path: Path, content: Any, what: str) -> None:
    folder = write_python(tmp_path / "set", 10)
    (folder / "test_batch").write_bytes(dumped(content))
    assert what in refused(opened(folder), "DATA-CIFAR").what


@pytest.mark.parametrize("names", [["a"], [1] * 10, "text", [["a"]] * 10])
def test_wrong_names_of_classes(tmp_path: Path, names: Any) -> None:
    folder = write_python(tmp_path / "set", 10)
    (folder / "batches.meta").write_bytes(dumped({"label_names": names}))
    assert refused(opened(folder), "DATA-CIFAR").where == str(folder / "batches.meta")
    folder = write_binary(tmp_path / "binary", 10)
    for data in (b"", b"one two", b"\xff " * 10):
        (folder / "batches.meta.txt").write_bytes(data)
        assert refused(opened(folder), "DATA-CIFAR").where == str(folder / "batches.meta.txt")


def test_both_versions_in_one_place_are_noted(tmp_path: Path) -> None:
    write_python(tmp_path / "place/cifar-10-batches-py", 10)
    write_binary(tmp_path / "place/cifar-10-batches-bin", 10)
    source = opened(tmp_path / "place")
    note = "the binary version of 10 classes lies there, too; the python version of 10 is read"
    assert source.facts().notes == (note,)


def test_other_folders_are_left_to_others(tmp_path: Path) -> None:
    assert cifar.recognise in RECOGNISERS
    for name in ("train", "test"):
        (tmp_path / "images" / name / "cat").mkdir(parents=True)
    (tmp_path / "few").mkdir()
    (tmp_path / "few" / "train").write_text("a word")
    (tmp_path / "empty" / "cifar-10-batches-py").mkdir(parents=True)
    for path in (tmp_path / "images", tmp_path / "few", tmp_path / "empty", tmp_path / "none"):
        assert cifar.recognise(path) is None


@pytest.mark.parametrize(("name", "folder", "classes"), [row[:3] for row in FOLDERS if row[3] is write_python])
def test_the_published_archive_is_put_in_place(tmp_path: Path, name: str, folder: str, classes: int) -> None:
    archive = tmp_path / f"{folder}.tar.gz"
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as packed:
        packed.add(write_python(tmp_path / "raw" / folder, classes), folder)
    archive.write_bytes(out.getvalue())
    published = {name: Published((PublishedFile(f"https://example.org/{archive.name}"),), "", archive=True)}
    environ = {"ESCALA_DATA": str(tmp_path / "data")}
    get(name, environ, lambda *_: None, given=[archive], published=published)
    source = SETS[name](name, environ)
    assert isinstance(source, Source)
    check_content(source, classes)
    assert source.facts().where == f"$ESCALA_DATA/{name}"
