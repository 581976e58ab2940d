"""Files are whole or absent, and a disk's refusal names the path, the need and the room."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ordinary_user import as_ordinary_user

from escala.store import files
from escala.store.files import disk_errors, names_in, write_atomic
from escala.terms.errors import EscalaError, Exit


@contextmanager
def longest_file(size: int) -> Iterator[None]:
    """Refuse writes beyond `size` bytes: the kernel takes the first part of a write, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_file_is_written_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    write_atomic(path, b"first, and longer")
    write_atomic(path, b"second")
    assert path.read_bytes() == b"second"
    assert names_in(tmp_path) == {"figures.json"}


def test_others_may_read_what_was_written(tmp_path: Path) -> None:
    old = os.umask(0o022)
    try:
        write_atomic(tmp_path / "report.md", b"x")
    finally:
        os.umask(old)
    assert (tmp_path / "report.md").stat().st_mode & 0o777 == 0o644


def test_the_longest_name_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    write_atomic(path, b"x")
    assert path.read_bytes() == b"x"


def test_a_refused_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    write_atomic(path, b"old")
    with longest_file(1000), pytest.raises(EscalaError, match="File too large") as caught:
        write_atomic(path, b"n" * 5000)
    assert caught.value.code == "ENV-DISK"
    assert "5,000 bytes needed" in str(caught.value)
    assert path.read_bytes() == b"old"
    assert names_in(tmp_path) == {"figures.json"}


def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "figures.json"
    write_atomic(path, b"old")

    def interrupt(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert names_in(tmp_path) == {"figures.json"}


def test_content_and_name_are_on_the_disk_before_it_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    real_fsync, real_replace = os.fsync, os.replace

    def fsync(descriptor: int) -> None:
        calls.append("sync " + ("folder" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file"))
        real_fsync(descriptor)

    def replace(source: Path, target: Path) -> None:
        calls.append("rename")
        real_replace(source, target)

    monkeypatch.setattr(files.os, "fsync", fsync)
    monkeypatch.setattr(files.os, "replace", replace)
    write_atomic(tmp_path / "a", b"x")
    assert calls == ["sync file", "rename", "sync folder"]


def test_a_full_disk_keeps_earlier_files_and_takes_the_write_once_it_has_grown(
    small_disk: Callable[[str], Path],
) -> None:
    place = small_disk("size=64k")
    write_atomic(place / "earlier.json", b"e" * 10_000)
    write_atomic(place / "report.md", b"old report")
    with pytest.raises(EscalaError, match="No space left on device") as caught:
        write_atomic(place / "report.md", b"r" * 100_000)
    text = str(caught.value)
    assert (caught.value.code, caught.value.exit) == ("ENV-DISK", Exit.DEVICE)
    assert str(place / "report.md") in text
    assert "100,000 bytes needed" in text
    assert "bytes free" in text
    assert "make room" in text
    assert (place / "earlier.json").read_bytes() == b"e" * 10_000
    assert (place / "report.md").read_bytes() == b"old report"
    assert names_in(place) == {"earlier.json", "report.md"}

    small_disk("size=1m")
    write_atomic(place / "report.md", b"r" * 100_000)
    assert (place / "report.md").read_bytes() == b"r" * 100_000


def test_free_bytes_are_those_of_the_disk_written_to(small_disk: Callable[[str], Path]) -> None:
    place = small_disk("size=64k")
    with pytest.raises(EscalaError, match=r"\(7 bytes needed, 65,536 bytes free\)"), disk_errors(place / "no/x", 7):
        raise OSError(errno.ENOSPC, "")


def test_a_read_only_disk_is_named(small_disk: Callable[[str], Path]) -> None:
    place = small_disk("size=64k")
    small_disk("ro")
    with pytest.raises(EscalaError, match="Read-only file system"):
        write_atomic(place / "x", b"x")


def test_a_folder_without_permission_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    try:
        with as_ordinary_user(), pytest.raises(EscalaError, match="Permission denied") as caught:
            write_atomic(tmp_path / "x", b"x")
    finally:
        tmp_path.chmod(0o755)
    assert caught.value.code == "ENV-DISK"
    assert names_in(tmp_path) == set()


@pytest.mark.parametrize(
    ("number", "words", "way_out"),
    [
        (errno.ENOSPC, "No space left on device", "make room"),
        (errno.EDQUOT, "quota exceeded", "make room"),
        (errno.EROFS, "Read-only file system", "use another one"),
        (errno.EACCES, "Permission denied", "use another one"),
        (errno.EIO, "Input/output error", "check the disk"),
        (errno.ELOOP, "Too many levels of symbolic links", "use another one"),
        (errno.ENAMETOOLONG, "File name too long", "use another one"),
        (errno.EFBIG, "File too large", "ulimit -f"),
        (errno.EMFILE, "Too many open files", "ulimit -n"),
    ],
)
def test_every_refusal_is_in_words_with_a_way_out(tmp_path: Path, number: int, words: str, way_out: str) -> None:
    path = tmp_path / "records.jsonl"
    with pytest.raises(EscalaError) as caught, disk_errors(path, 12_345):
        raise OSError(number, "")
    text = str(caught.value)
    assert text.startswith(f"escala: error[ENV-DISK] {path}: cannot write: ")
    assert words in text
    assert "12,345 bytes needed" in text
    assert "bytes free" in text
    assert way_out in text
    assert isinstance(caught.value.__cause__, OSError)


def test_an_error_of_another_kind_passes() -> None:
    with pytest.raises(ValueError, match="mine"), disk_errors(Path("x")):
        raise ValueError("mine")


def test_an_error_without_a_number_keeps_its_text(tmp_path: Path) -> None:
    with pytest.raises(EscalaError, match="cannot write: cable is out"), disk_errors(tmp_path / "x"):
        raise OSError("cable is out")


def test_reading_tells_no_amounts(tmp_path: Path) -> None:
    with pytest.raises(EscalaError) as caught, disk_errors(tmp_path, doing="read"):
        tmp_path.read_bytes()
    assert str(caught.value) == f"escala: error[ENV-DISK] {tmp_path}: cannot read: Is a directory"


def test_a_missing_folder_is_made_with_its_parents(tmp_path: Path) -> None:
    assert names_in(tmp_path / "a" / "b") == set()
    assert (tmp_path / "a" / "b").is_dir()


def test_what_is_no_folder_gives_the_real_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    for name, reason in {"file": errno.ENOTDIR, "loop": errno.ELOOP, "broken": errno.ENOENT}.items():
        with pytest.raises(OSError) as caught:  # noqa: PT011, the number says which
            names_in(tmp_path / name)
        assert caught.value.errno == reason
    assert not (tmp_path / "nowhere").exists()
