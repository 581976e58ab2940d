from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from idx_files import FILES, arrays, idx_bytes, write_set
from ordinary_user import as_ordinary_user

from escala.data import SETS, Description, Request, find, first_found, mnist, paths
from escala.data import describe as describe_in
from escala.terms.errors import EscalaError, Exit


@pytest.fixture(autouse=True)
def no_system_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the machine's own data sets out of the search."""
    folder = tmp_path / "system"
    monkeypatch.setattr(paths, "SYSTEM_FOLDER", folder)
    return folder


def describe(request: Request, environ: dict[str, str]) -> Description:
    return describe_in(request, environ, Path(os.devnull), print)


def refused(name: str, environ: dict[str, str] | None = None) -> EscalaError:
    with pytest.raises(EscalaError) as caught:
        describe(Request(name), environ or {})
    assert caught.value.exit == Exit.DATA
    return caught.value


def test_describes_a_folder(tmp_path: Path) -> None:
    found = describe(Request(str(write_set(tmp_path / "my-set", arrays()))), {})
    assert (found.name, found.origin, found.where) == ("my-set", "real", str(tmp_path / "my-set"))
    assert (found.shape, found.dtype, found.classes) == ((28, 28), "uint8", 10)
    assert found.rows == {"train": 55, "validation": 5, "test": 20}
    assert found.notes == ()


def test_digest_is_of_the_content(tmp_path: Path) -> None:
    content = arrays()
    packed = describe(Request(str(write_set(tmp_path / "a", content))), {})
    plain = describe(Request(str(write_set(tmp_path / "b", content, packed=False)), validation=0.5), {})
    assert packed.digest == plain.digest
    assert len(packed.digest) == 64
    for name in FILES:
        other = {key: array.copy() for key, array in content.items()}
        other[name].flat[0] = (other[name].flat[0] + 1) % 10
        assert describe(Request(str(write_set(tmp_path / "c", other))), {}).digest != packed.digest


def test_search_order(tmp_path: Path, no_system_folder: Path) -> None:
    own = tmp_path / "own"
    environ = {"ESCALA_DATA": str(own)}
    own.mkdir()
    write_set(no_system_folder / "fashion-mnist", arrays(seed=1))
    assert describe(Request("fashion-mnist"), environ).where == str(no_system_folder / "fashion-mnist")
    write_set(own, arrays(seed=2))
    found = describe(Request("fashion-mnist"), environ)
    # Records travel: they tell how the set was found, not where a person keeps files.
    assert found.where == "$ESCALA_DATA"
    assert found.notes == ("$ESCALA_DATA itself holds the files, so they are taken for fashion-mnist",)
    write_set(own / "fashion-mnist", arrays(seed=3))
    found = describe(Request("fashion-mnist"), environ)
    assert (found.where, found.notes) == ("$ESCALA_DATA/fashion-mnist", ())
    assert describe(Request("fashion-mnist"), {}).where == str(no_system_folder / "fashion-mnist")


def test_first_found(tmp_path: Path) -> None:
    names = ("mnist", str(tmp_path / "folder"), "fashion-mnist", "synthetic")
    environ = {"ESCALA_DATA": str(tmp_path)}
    assert first_found(names, environ) == "synthetic"
    write_set(tmp_path / "fashion-mnist", arrays())
    assert first_found(names, environ) == "fashion-mnist"
    write_set(tmp_path / "folder", arrays())
    assert first_found(names, environ) == str(tmp_path / "folder")


def test_nothing_found_names_every_place(tmp_path: Path, no_system_folder: Path) -> None:
    with pytest.raises(EscalaError) as caught:
        first_found(("mnist", "fashion-mnist", "/no/such/place"), {"ESCALA_DATA": str(tmp_path)})
    assert caught.value.code == "DATA-PATH"
    for place in (tmp_path / "mnist", tmp_path, no_system_folder / "fashion-mnist", "/no/such/place"):
        assert str(place) in caught.value.what
    assert "ESCALA_DATA" in caught.value.next_step


def test_every_named_set_is_found_or_refused_in_words() -> None:
    for name in SETS:
        if name == "synthetic":
            assert describe(Request(name), {}).rows == {"train": 55_000, "validation": 5_000, "test": 10_000}
        elif name.startswith("synthetic"):
            assert find(name, {}).facts().origin == "generated"
        else:
            # Debian's packages of texts may be there, which a workload for images does not take.
            assert refused(name).code in ("DATA-PATH", *(("DATA-KIND",) if name in ("fortunes", "wordnet") else ()))


@pytest.mark.parametrize("name", ["path", "variable"])
def test_bad_paths(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    os.symlink("loop", tmp_path / "loop")
    os.symlink("nowhere", tmp_path / "dangling")
    for place, words in (
        ("missing", "No such file or directory"),
        ("dangling", "No such file or directory"),
        ("file", "is a file"),
        ("file/below", "Not a directory"),
        ("loop", "Too many levels of symbolic links"),
        ("x" * 300, "File name too long"),
        ("zero\0byte", "embedded null byte"),
    ):
        path = str(tmp_path / place)
        error = refused(path) if name == "path" else refused("mnist", {"ESCALA_DATA": path})
        assert error.code == "DATA-PATH"
        assert error.where == path
        assert words in error.what


def test_unreadable_folder_and_file(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "set", arrays())
    for part in (folder, folder / f"{FILES[2]}.gz"):
        before = part.stat().st_mode
        part.chmod(0)
        with as_ordinary_user():
            error = refused(str(folder))
        part.chmod(before)
        assert error.code == "DATA-PATH"
        assert error.what == "Permission denied"


def test_an_incomplete_folder_names_the_missing_file(tmp_path: Path) -> None:
    write_set(tmp_path / "mnist", arrays())
    (tmp_path / "mnist" / f"{FILES[3]}.gz").unlink()
    # Neither another place nor the generated set may quietly take over.
    for error in (refused(str(tmp_path / "mnist")), refused("mnist", {"ESCALA_DATA": str(tmp_path)})):
        assert error.code == "DATA-PATH"
        assert FILES[3] in error.what
    assert first_found(("mnist", "synthetic"), {"ESCALA_DATA": str(tmp_path)}) == "mnist"


def test_names_that_hide_the_packing_are_noted(tmp_path: Path) -> None:
    content = arrays()
    folder = write_set(tmp_path / "set", content, packed=False)
    (folder / FILES[0]).write_bytes(gzip.compress(idx_bytes(content[FILES[0]])))
    (folder / FILES[3]).unlink()
    (folder / f"{FILES[3]}.gz").write_bytes(idx_bytes(content[FILES[3]]))
    assert describe(Request(str(folder)), {}).notes == (
        "train-images-idx3-ubyte holds gzip data without .gz: read as gzip",
        "t10k-labels-idx1-ubyte.gz holds no gzip data in spite of .gz: read as it is",
    )


@pytest.mark.parametrize("part", [0, 2])
def test_counts_of_images_and_labels_must_agree(tmp_path: Path, part: int) -> None:
    content = arrays()
    content[FILES[part + 1]] = content[FILES[part + 1]][:-1]
    error = refused(str(write_set(tmp_path / "set", content)))
    assert error.code == "DATA-IDX"
    assert FILES[part + 1] in error.where
    assert f"{len(content[FILES[part]]) - 1} labels" in error.what
    assert f"{len(content[FILES[part]])} images" in error.expected


def test_training_and_test_images_must_be_of_one_size(tmp_path: Path) -> None:
    content = arrays()
    content[FILES[2]] = content[FILES[2]][:, :14]
    error = refused(str(write_set(tmp_path / "set", content)))
    assert error.code == "DATA-IDX"
    assert "14 x 28" in error.what
    assert "28 x 28" in error.expected


@pytest.mark.parametrize("part", [1, 3])
def test_a_label_out_of_range_is_named(tmp_path: Path, part: int) -> None:
    content = arrays()
    content[FILES[part]][[7, 11]] = (10, 255)
    error = refused(str(write_set(tmp_path / "set", content)))
    assert error.code == "DATA-LABEL"
    assert FILES[part] in error.where
    assert error.what == "the label of row 7 (from 0) is 10; labels out of range: 2"


def test_damage_in_the_middle_of_the_images_is_found_before_a_run(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "set", arrays())
    path = folder / f"{FILES[0]}.gz"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 16
    path.write_bytes(data)
    error = refused(str(folder))
    assert error.code == "DATA-IDX"
    assert str(path) in error.where


@pytest.mark.parametrize("name", ["synthetic:", "synthetic:600", "synthetic:0+10", "synthetic:-1+5", "synthetic:²+5"])
def test_sizes_of_the_generated_set(name: str) -> None:
    with pytest.raises(EscalaError) as caught:
        describe(Request(name), {})
    assert caught.value.code == "CFG-RANGE"
    assert name in caught.value.what


def test_a_generated_set_is_described_without_drawing_it() -> None:
    found = describe(Request("synthetic:600+100", validation=0), {})
    assert found.origin == "generated"
    assert found.digest == ""
    assert found.rows == {"train": 600, "validation": 0, "test": 100}
    assert "600 + 100 rows, seed 0" in found.where


def test_the_real_set_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path("/usr/share/datasets/fashion-mnist")
    if not folder.is_dir():
        pytest.skip("the package dataset-fashion-mnist is not installed")
    found = describe(Request(str(folder)), {})
    assert found.rows == {"train": 55_000, "validation": 5_000, "test": 10_000}
    source = mnist.in_folder(folder)
    for part, rows, first in (("train", 60_000, [9, 0, 0, 3, 0, 2, 7, 2, 5, 5]), ("test", 10_000, [9, 2, 1, 1, 6])):
        labels = source.targets(part)
        assert np.bincount(labels).tolist() == [rows // 10] * 10
        assert labels[: len(first)].tolist() == first


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("fashion-mnits", "fashion-mnist"), ("synthetic-fsh:64+16", "synthetic-fish:64+16"), ("MNIST", "mnist")],
)
def test_a_name_that_is_nearly_one_of_ours_is_asked_about(typed: str, meant: str) -> None:
    assert refused(typed).next_step == f"did you mean {meant}?"
    with pytest.raises(EscalaError) as caught:
        first_found([typed], {})
    assert caught.value.next_step == f"did you mean {meant}?"


@pytest.mark.parametrize("typed", ["some/where/mnits", "qqqqqqq"])
def test_a_path_and_a_word_like_no_other_are_not_asked_about(typed: str) -> None:
    assert "did you mean" not in refused(typed).next_step
