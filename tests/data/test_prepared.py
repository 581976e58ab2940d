from __future__ import annotations

import fcntl
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from idx_files import FILES, arrays, write_set

from escala.data import Request, entry
from escala.data.manifest import MANIFEST
from escala.data.prepared import Prepared, cache_folder, load, prepare
from escala.data.split import split_rows
from escala.terms.errors import EscalaError, Exit

CONTENT = arrays(train=600, test=50)
SYNTHETIC = Request("synthetic:620+110")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_set(tmp_path / "my set", CONTENT)


def prepare_quietly(request: Request, cache: Path) -> tuple[Prepared, list[str]]:
    said: list[str] = []
    return prepare(request, cache, {}, said.append), said


def names(cache: Path) -> set[str]:
    """What is in the cache, without the locks, which stay."""
    return {name for name in os.listdir(cache) if not name.endswith(".lock")}


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Let no file grow beyond `size` bytes: a write fails in its middle as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_what_a_process_writes_into_a_split_stays_its_own(folder: Path, cache: Path) -> None:
    place = prepare_quietly(Request(str(folder)), cache)[0].folder
    before = load(place)["train"].inputs.copy()
    load(place)["train"].inputs[:] = 7
    np.testing.assert_array_equal(load(place)["train"].inputs, before)


def test_splits_hold_the_rows_of_the_files(folder: Path, cache: Path) -> None:
    request = Request(str(folder), limit=100)
    made, said = prepare_quietly(request, cache)
    assert made.description.rows == {"train": 100, "validation": 50, "test": 50}
    assert len(said) == 1
    splits = load(made.folder)
    assert list(splits) == ["train", "validation", "test"]
    kept = split_rows(CONTENT[FILES[1]].astype(np.int64), request)
    for split, rows in (("train", kept.train), ("validation", kept.validation)):
        np.testing.assert_array_equal(splits[split].inputs, CONTENT[FILES[0]][rows])
        np.testing.assert_array_equal(splits[split].targets, CONTENT[FILES[1]][rows])
    np.testing.assert_array_equal(splits["test"].inputs, CONTENT[FILES[2]])
    np.testing.assert_array_equal(splits["test"].targets, CONTENT[FILES[3]])
    for split in splits.values():
        assert (split.inputs.dtype, split.targets.dtype) == (np.uint8, np.int64)


def test_arrays_are_mapped_not_read(folder: Path, cache: Path) -> None:
    made, _ = prepare_quietly(Request(str(folder)), cache)
    assert isinstance(load(made.folder)["train"].inputs.base, np.memmap)


def test_no_validation_rows(folder: Path, cache: Path) -> None:
    made, _ = prepare_quietly(Request(str(folder), validation=0), cache)
    split = load(made.folder)["validation"]
    assert (split.inputs.shape, split.targets.shape) == ((0, 28, 28), (0,))


def test_a_second_time_nothing_is_written(folder: Path, cache: Path) -> None:
    first, _ = prepare_quietly(Request(str(folder)), cache)
    before = {path: path.stat().st_mtime_ns for path in first.folder.iterdir()}
    second, said = prepare_quietly(Request(str(folder)), cache)
    assert (second, said) == (first, [])
    assert {path: path.stat().st_mtime_ns for path in first.folder.iterdir()} == before


def test_the_same_content_elsewhere_needs_no_second_entry(folder: Path, cache: Path, tmp_path: Path) -> None:
    first, _ = prepare_quietly(Request(str(folder)), cache)
    other = write_set(tmp_path / "other" / "my set", CONTENT, packed=False)
    second, said = prepare_quietly(Request(str(other)), cache)
    assert second.folder == first.folder
    assert second.description.where == str(other)
    assert said == []


def test_other_content_or_another_split_is_another_entry(folder: Path, cache: Path) -> None:
    requests = (Request(str(folder)), Request(str(folder), limit=30), Request(str(folder), validation=0.25))
    places = {prepare_quietly(request, cache)[0].folder for request in requests}
    write_set(folder, arrays(train=600, test=50, seed=9))
    places.add(prepare_quietly(requests[0], cache)[0].folder)
    assert len(places) == 4


def test_a_generated_set_is_drawn_once_and_gets_its_digest(cache: Path) -> None:
    first, said = prepare_quietly(SYNTHETIC, cache)
    assert said == [f"drawing synthetic:620+110: 730 rows, once, into {cache}"]
    assert len(first.description.digest) == 64
    second, said = prepare_quietly(SYNTHETIC, cache)
    assert (second, said) == (first, [])
    assert len(load(first.folder)["train"].targets) == first.description.rows["train"] == 568


@pytest.mark.parametrize("harm", ["cut", "flip", "remove", "manifest", "no manifest", "digest", "file instead"])
def test_a_damaged_entry_is_made_anew(cache: Path, harm: str) -> None:
    made, _ = prepare_quietly(SYNTHETIC, cache)
    sound = {path.name: path.read_bytes() for path in made.folder.iterdir()}
    target = made.folder / "train-inputs.npy"
    manifest = made.folder / MANIFEST
    match harm:
        case "cut":
            target.write_bytes(sound[target.name][:-1])
        case "flip":
            target.write_bytes(sound[target.name][:-1] + bytes([sound[target.name][-1] ^ 1]))
        case "remove":
            target.unlink()
        case "manifest":
            manifest.write_bytes(sound[MANIFEST][:100])
        case "no manifest":
            manifest.unlink()
        case "digest":
            digest = made.description.digest.encode()
            manifest.write_bytes(sound[MANIFEST].replace(digest, digest[::-1]))
        case "file instead":
            for path in made.folder.iterdir():
                path.unlink()
            made.folder.rmdir()
            made.folder.touch()
    again, said = prepare_quietly(SYNTHETIC, cache)
    assert again == made
    assert len(said) == 1
    assert {path.name: path.read_bytes() for path in made.folder.iterdir()} == sound
    assert names(cache) == {made.folder.name}


def test_loading_what_is_not_whole_is_refused(cache: Path) -> None:
    made, _ = prepare_quietly(SYNTHETIC, cache)
    target = made.folder / "test-targets.npy"
    target.write_bytes(target.read_bytes()[:-8])
    for place in (made.folder, cache / "nothing"):
        with pytest.raises(EscalaError) as caught:
            load(place)
        assert (caught.value.code, caught.value.exit) == ("DATA-CACHE", Exit.DATA)


def test_pickled_arrays_are_never_loaded(cache: Path) -> None:
    made, _ = prepare_quietly(SYNTHETIC, cache)
    target = made.folder / "test-targets.npy"
    size = target.stat().st_size
    np.save(target, np.array([{}], dtype=object), allow_pickle=True)
    os.truncate(target, size)
    with pytest.raises(EscalaError, match="DATA-CACHE"):
        load(made.folder)


def test_leftovers_of_a_killed_process_are_removed(cache: Path) -> None:
    made, _ = prepare_quietly(SYNTHETIC, cache)
    left = cache / f".{made.folder.name}.new-abc" / "new"
    left.mkdir(parents=True)
    (left / "train-inputs.npy").write_bytes(b"half")
    other = cache / ".other-0123.new-abc"
    other.mkdir()
    (made.folder / MANIFEST).unlink()
    prepare_quietly(SYNTHETIC, cache)
    assert names(cache) == {made.folder.name, other.name}


def test_no_room_is_said_before_anything_is_written(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = SimpleNamespace(f_bavail=3, f_frsize=4096)
    monkeypatch.setattr(entry.os, "statvfs", lambda _: full)
    with pytest.raises(EscalaError) as caught:
        prepare_quietly(SYNTHETIC, cache)
    assert (caught.value.code, caught.value.exit) == ("ENV-DISK", Exit.DEVICE)
    assert str(cache) in caught.value.where
    assert "12,288 bytes free" in caught.value.expected
    needed = int(caught.value.expected.split(" ")[0].replace(",", ""))
    assert "ESCALA_CACHE" in caught.value.next_step
    assert names(cache) == set()
    monkeypatch.undo()
    made, _ = prepare_quietly(SYNTHETIC, cache)
    written = sum(path.stat().st_size for path in made.folder.iterdir())
    assert written <= needed < written + 5000


def test_a_write_that_fails_half_way_leaves_nothing(cache: Path) -> None:
    with largest_file(100_000), pytest.raises(EscalaError) as caught:
        prepare_quietly(SYNTHETIC, cache)
    assert caught.value.code == "ENV-DISK"
    assert "File too large" in caught.value.what
    assert names(cache) == set()
    assert prepare_quietly(SYNTHETIC, cache)[1] != []


def test_a_cache_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EscalaError) as caught:
        prepare_quietly(SYNTHETIC, tmp_path / "file" / "cache")
    assert caught.value.code == "ENV-DISK"
    assert "Not a directory" in caught.value.what
    assert "ESCALA_CACHE" in caught.value.next_step


def test_a_finished_cache_may_be_read_only(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = prepare_quietly(SYNTHETIC, cache)

    def refuse(path: Any, flags: int, *_: Any, **__: Any) -> int:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(entry.os, "open", refuse)
    assert prepare_quietly(SYNTHETIC, cache) == (made, [])


def test_files_that_change_while_they_are_read(folder: Path, cache: Path) -> None:
    def replace_files(_: str) -> None:
        write_set(folder, arrays(train=600, test=50, seed=4))

    with pytest.raises(EscalaError) as caught:
        prepare(Request(str(folder)), cache, {}, replace_files)
    assert (caught.value.code, caught.value.exit) == ("DATA-CHANGED", Exit.DATA)
    assert names(cache) == set()


def test_waits_for_another_process_and_takes_what_it_made(cache: Path) -> None:
    made, _ = prepare_quietly(SYNTHETIC, cache)
    away = made.folder.rename(cache / "away")
    waiting = threading.Event()
    results: list[Prepared] = []
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        waiting.set()

    with (cache / f".{made.folder.name}.lock").open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        thread = threading.Thread(target=lambda: results.append(prepare(SYNTHETIC, cache, {}, say)))
        thread.start()
        assert waiting.wait(30)
        assert results == []
        away.rename(made.folder)
    thread.join(30)
    assert results == [made]
    assert said == [f"waiting for another process that prepares {made.folder.name}"]


def test_without_locks_the_first_entry_stays(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system without locks: somebody else finishes the same entry while this one is being written."""

    def no_locks(*_: Any) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(entry.fcntl, "flock", no_locks)
    others: list[tuple[Prepared, int]] = []

    def say(_: str) -> None:
        other = prepare(SYNTHETIC, cache, {}, lambda _: None)
        others.append((other, other.folder.stat().st_ino))

    made = prepare(SYNTHETIC, cache, {}, say)
    assert [(made, made.folder.stat().st_ino)] == others
    assert names(cache) == {made.folder.name}


def test_two_processes_at_once(cache: Path) -> None:
    script = (
        "import sys, pathlib; from escala.data import Request; from escala.data.prepared import prepare, load\n"
        "made = prepare(Request('synthetic:3000+500'), pathlib.Path(sys.argv[1]), {}, lambda _: None)\n"
        "print(made.folder, made.description.digest, load(made.folder)['train'].inputs.shape)"
    )
    command = [sys.executable, "-c", script, str(cache)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate(timeout=60)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert outputs[0] == outputs[1]
    assert "(2750, 28, 28)" in outputs[0]
    assert len(names(cache)) == 1


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"ESCALA_CACHE": "/a/b", "XDG_CACHE_HOME": "/c"}, "/a/b"),
        ({"ESCALA_CACHE": "", "XDG_CACHE_HOME": "/c", "HOME": "/h"}, "/c/escala"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/h"}, "/h/.cache/escala"),
        ({"HOME": "/h"}, "/h/.cache/escala"),
    ],
)
def test_where_the_cache_is(environ: dict[str, str], folder: str) -> None:
    assert cache_folder(environ) == Path(folder)


def test_torch_is_not_imported() -> None:
    script = "import sys, escala.data, escala.data.prepared; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)
