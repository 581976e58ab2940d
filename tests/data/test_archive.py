from __future__ import annotations

import gzip
import io
import os
import stat
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from escala.data import archive
from escala.data.archive import Limits, unpack
from escala.terms.errors import EscalaError, Exit

FILES = {"set/a.txt": b"first\n" * 50, "set/deep/b.bin": bytes(range(256)), "set/empty": b""}

Change = Callable[[tarfile.TarInfo], None]

shared_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def tar_of(files: dict[str, bytes], *odd: tarfile.TarInfo, mode: str = "w") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as packed:  # type: ignore[call-overload]
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            member.mode = 0o4777
            packed.addfile(member, io.BytesIO(data))
        for member in odd:
            packed.addfile(member, io.BytesIO(b"x" * member.size))
    return out.getvalue()


def zip_of(files: dict[str, bytes], packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", packing) as packed:
        for name, data in files.items():
            packed.writestr(zipfile.ZipInfo(name), data, packing)
    return out.getvalue()


def odd(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, link
    member.size = 1 if kind == tarfile.REGTYPE else 0
    return member


TAR = tar_of(FILES)
TAR_GZ = gzip.compress(TAR, mtime=0)
ZIP = zip_of(FILES)


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def unpacked(tmp_path: Path, data: bytes, name: str = "archive", limits: Limits | None = None) -> dict[str, bytes]:
    (tmp_path / name).write_bytes(data)
    target = tmp_path / "target"
    unpack(tmp_path / name, target, limits or Limits())
    return content(target)


def refused(
    tmp_path: Path, data: bytes, code: str = "SEC-ARCHIVE", limits: Limits | None = None, name: str = "archive"
) -> EscalaError:
    with pytest.raises(EscalaError) as caught:
        unpacked(tmp_path, data, name, limits)
    assert caught.value.code == code
    assert caught.value.exit == (Exit.UNSAFE if code == "SEC-ARCHIVE" else Exit.DATA)
    assert str(tmp_path / name) in caught.value.where
    assert os.listdir(tmp_path) == [name]
    return caught.value


@pytest.mark.parametrize("data", [TAR, TAR_GZ, ZIP, tar_of(FILES, mode="w:gz"), zip_of(FILES, zipfile.ZIP_STORED)])
def test_unpacks_what_was_packed(tmp_path: Path, data: bytes) -> None:
    assert unpacked(tmp_path, data) == FILES
    assert sorted(os.listdir(tmp_path)) == ["archive", "target"]
    for path in (tmp_path / "target").rglob("*"):
        assert not path.stat().st_mode & (stat.S_ISUID | stat.S_IWOTH)


def test_folders_and_the_point_are_members(tmp_path: Path) -> None:
    folders = [odd(".", tarfile.DIRTYPE), odd("./set", tarfile.DIRTYPE), odd("./set/none", tarfile.DIRTYPE)]
    assert unpacked(tmp_path, tar_of({"./set/a": b"1"}, *folders)) == {"set/a": b"1"}
    assert (tmp_path / "target/set/none").is_dir()


def test_a_single_gzip_file(tmp_path: Path) -> None:
    assert unpacked(tmp_path, gzip.compress(b"text" * 1000), "words.txt.gz") == {"words.txt": b"text" * 1000}


def test_a_gzip_file_called_a_tar_has_to_be_one(tmp_path: Path) -> None:
    refused(tmp_path, gzip.compress(b"text" * 1000), "DATA-ARCHIVE", name="set.tar.gz")


OUTSIDE = [
    "../out",
    "a/../../out",
    "/etc/out",
    "..",
    "a/..",
    "C:/out",
    "C:out",
    "\\out",
    "a\\..\\..\\out",
    "//host/out",
]


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("pack", [tar_of, zip_of])
def test_a_name_that_leads_out(tmp_path: Path, pack: Callable[[dict[str, bytes]], bytes], name: str) -> None:
    error = refused(tmp_path, pack(FILES | {name: b"x"}))
    assert "member 4" in error.what
    assert not Path("/etc/out").exists()
    assert not (tmp_path.parent / "out").exists()


KINDS = [
    (tarfile.SYMTYPE, "a link to '/etc'"),
    (tarfile.LNKTYPE, "a link to '/etc'"),
    (tarfile.CHRTYPE, "a device or pipe"),
    (tarfile.BLKTYPE, "a device or pipe"),
    (tarfile.FIFOTYPE, "a device or pipe"),
    (b"?", "of an unknown kind"),
]


@pytest.mark.parametrize(("kind", "what"), KINDS)
@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_links_and_devices(tmp_path: Path, kind: bytes, what: str, mode: str) -> None:
    error = refused(tmp_path, tar_of(FILES, odd("set/odd", kind, "/etc"), mode=mode))
    assert "'set/odd'" in error.what
    assert what in error.what


def test_a_link_in_a_zip(tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        link = zipfile.ZipInfo("set/link")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        packed.writestr(link, "/etc")
    assert "a link or device" in refused(tmp_path, out.getvalue()).what


def test_a_file_with_holes(tmp_path: Path) -> None:
    hole = tarfile.TarInfo("set/holes")
    hole.pax_headers = {"GNU.sparse.map": "0,1", "GNU.sparse.size": "1000", "GNU.sparse.numblocks": "1"}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as packed:
        hole.size = 1
        packed.addfile(hole, io.BytesIO(b"x"))
    assert "a file with holes" in refused(tmp_path, out.getvalue()).what


@pytest.mark.parametrize("names", [("a", "a"), ("a", "a/b"), ("a/b", "a"), ("a/./b", "a//b")])
def test_members_in_each_others_place(tmp_path: Path, names: tuple[str, str]) -> None:
    error = refused(tmp_path, tar_of({names[0]: b"1"}, odd(names[1])))
    assert "takes the place" in error.what


def test_too_many_members(tmp_path: Path) -> None:
    for pack in (tar_of, zip_of):
        assert "2 members" in refused(tmp_path, pack(FILES), limits=Limits(members=2)).what
    assert unpacked(tmp_path, TAR, limits=Limits(members=3)) == FILES


def test_too_many_bytes(tmp_path: Path) -> None:
    size = sum(map(len, FILES.values()))
    for data in (TAR, TAR_GZ, ZIP):
        refused(tmp_path, data, limits=Limits(bytes=size - 1, ratio=10**6))
    assert unpacked(tmp_path, ZIP, limits=Limits(bytes=size, ratio=10**6)) == FILES


def test_a_bomb_is_refused_in_little_memory(tmp_path: Path) -> None:
    zeros = b"\0" * 2**24
    bombs = [
        tar_of({"a": zeros}, mode="w:gz"),
        zip_of({"a": zeros}),
        zip_of({"a": zeros}, zipfile.ZIP_BZIP2),
        gzip.compress(b"a" + zeros),
    ]
    assert len(zeros) > 10_000 * len(bombs[2])
    for bomb in bombs:
        tracemalloc.start()
        assert "at most 200 times" in refused(tmp_path, bomb).expected
        assert tracemalloc.get_traced_memory()[1] < 4 * 2**20
        tracemalloc.stop()


def test_a_bomb_behind_the_end_of_a_tar(tmp_path: Path) -> None:
    assert "at most 200 times" in refused(tmp_path, gzip.compress(TAR + b"\0" * 2**24)).expected


def test_notes_and_lists_that_would_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note = tarfile.TarInfo("././@LongLink")
    note.type, note.size = tarfile.GNUTYPE_LONGNAME, 2**30
    assert "promises 1,073,741,824 bytes" in refused(tmp_path, note.tobuf() + b"\0" * 4096, "DATA-ARCHIVE").what
    monkeypatch.setattr(archive, "_LONGEST_LIST", 64)
    assert "list of members" in refused(tmp_path, ZIP).what


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"no archive at all", b"\x1f\x8b", b"\0" * 1024, tar_of({})])
def test_what_is_no_archive(tmp_path: Path, data: bytes) -> None:
    refused(tmp_path, data, "DATA-ARCHIVE")


def test_an_encrypted_member(tmp_path: Path) -> None:
    data = bytearray(ZIP)
    data[data.index(b"PK\x01\x02") + 8] |= 1
    refused(tmp_path, bytes(data), "DATA-ARCHIVE")


@pytest.mark.parametrize("data", [TAR[:3072], TAR_GZ, ZIP])
def test_cut_anywhere(tmp_path: Path, data: bytes) -> None:
    for length in range(0, len(data), 7):
        refused(tmp_path, data[:length], "DATA-ARCHIVE")


def test_a_damaged_header_does_not_end_a_tar_early(tmp_path: Path) -> None:
    data = bytearray(TAR)
    data[data.index(b"set/deep")] ^= 1
    assert "header" in refused(tmp_path, bytes(data), "DATA-ARCHIVE").what


def test_a_wrong_checksum_leaves_nothing(tmp_path: Path) -> None:
    data = bytearray(zip_of(FILES, zipfile.ZIP_STORED))
    data[data.index(b"first")] ^= 1
    refused(tmp_path, bytes(data), "DATA-ARCHIVE")
    packed = bytearray(TAR_GZ)
    packed[-6] ^= 1
    refused(tmp_path, bytes(packed), "DATA-ARCHIVE")


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    with pytest.raises(EscalaError) as caught:
        unpacked(tmp_path, TAR)
    assert caught.value.code == "DATA-PATH"
    assert not os.listdir(tmp_path / "target")
    with pytest.raises(EscalaError) as caught:
        unpack(tmp_path / "none", tmp_path / "new")
    assert caught.value.code == "DATA-PATH"


@shared_folder
@given(
    st.sampled_from([TAR[:4096], TAR_GZ, ZIP]), st.lists(st.tuples(st.integers(0), st.binary(max_size=3)), max_size=4)
)
def test_damage_is_refused_or_harmless(tmp_path: Path, data: bytes, changes: list[tuple[int, bytes]]) -> None:
    for at, new in changes:
        at %= len(data)
        data = data[:at] + new + data[at + len(new) :]
    place = tmp_path / "one" / "two"
    place.mkdir(parents=True, exist_ok=True)
    (place / "archive").write_bytes(data)
    try:
        unpack(place / "archive", place / "target")
    except EscalaError as error:
        assert error.code in ("SEC-ARCHIVE", "DATA-ARCHIVE", "ENV-DISK")  # noqa: PT017
        assert os.listdir(place) == ["archive"]
    else:
        for path in sorted((place / "target").rglob("*"), reverse=True):
            assert not path.is_symlink()
            path.unlink() if path.is_file() else path.rmdir()
        (place / "target").rmdir()
    assert os.listdir(tmp_path) == ["one"]
