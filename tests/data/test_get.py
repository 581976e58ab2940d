"""Fetching a published set from a made-up server; nothing is ever left behind when something is wrong."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import socket
import tarfile
import urllib.error
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from idx_files import arrays, idx_bytes, write_set

from escala.data import SETS
from escala.data import get as module
from escala.data.get import Got, get, open_https
from escala.data.published import PUBLISHED, Published, PublishedFile
from escala.report.data_text import got_text
from escala.terms.errors import EscalaError, Exit

HOST = "https://data.example/sets"


def contents() -> dict[str, bytes]:
    return {f"{name}.gz": gzip.compress(idx_bytes(array), mtime=0) for name, array in arrays().items()}


def published(files: Mapping[str, bytes], *, sums: bool = True, archive: bool = False) -> dict[str, Published]:
    return {
        "mnist": Published(
            tuple(
                PublishedFile(
                    f"{HOST}/{name}",
                    len(data) if sums else None,
                    hashlib.sha256(data).hexdigest() if sums else None,
                )
                for name, data in files.items()
            ),
            "free",
            archive,
        )
    }


class Server:
    """Answers with bytes it was given, or raises what it was given."""

    def __init__(self, files: Mapping[str, bytes | Exception]) -> None:
        self.files = files
        self.asked = list[str]()

    def __call__(self, address: str) -> io.BytesIO:
        self.asked.append(address)
        found = self.files[address.removeprefix(f"{HOST}/")]
        if isinstance(found, Exception):
            raise found
        return io.BytesIO(found)


def quiet(what: str, done: int, total: int | None) -> None:
    del what, done, total


def fetch(tmp_path: Path, server: Callable[[str], io.BytesIO], sets: Mapping[str, Published]) -> Got:
    return get("mnist", {"ESCALA_DATA": str(tmp_path / "own")}, quiet, opener=server, published=sets)


def refused(tmp_path: Path, server: Callable[[str], io.BytesIO], sets: Mapping[str, Published]) -> EscalaError:
    with pytest.raises(EscalaError) as caught:
        fetch(tmp_path, server, sets)
    assert os.listdir(tmp_path / "own") == []
    return caught.value


def test_fetches_compares_and_puts_in_place(tmp_path: Path) -> None:
    files, told = contents(), list[tuple[str, int, int | None]]()
    server = Server(files)
    environ = {"ESCALA_DATA": str(tmp_path)}
    got = get("mnist", environ, lambda *moved: told.append(moved), opener=server, published=published(files))
    assert got.folder == tmp_path / "mnist"
    assert {path.name: path.read_bytes() for path in got.folder.iterdir()} == files
    assert os.listdir(tmp_path) == ["mnist"]
    assert server.asked == [f"{HOST}/{name}" for name in files]
    assert all(file.compared for file in got.files)
    assert told[-1] == (got.files[-1].name, got.files[-1].size, got.files[-1].size)
    source = SETS["mnist"]("mnist", environ)
    assert source is not None
    assert source.facts().where == "$ESCALA_DATA/mnist"


def test_a_place_of_ones_own(tmp_path: Path) -> None:
    files = contents()
    got = get("mnist", {}, quiet, to=tmp_path / "a" / "b", opener=Server(files), published=published(files))
    assert set(os.listdir(tmp_path / "a" / "b")) == set(files)
    assert got.folder == tmp_path / "a" / "b"


def test_without_a_published_sum_the_sum_is_told(tmp_path: Path) -> None:
    files = contents()
    got = fetch(tmp_path, Server(files), published(files, sums=False))
    assert not any(file.compared for file in got.files)
    text = got_text(got, width=160)
    for name, data in files.items():
        assert name in text
        assert hashlib.sha256(data).hexdigest() in text
    assert "not compared" in text


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda data: data[:-1], "ends after"),
        (lambda data: data + b"x", "is longer than"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "has the sha256"),
    ],
)
def test_another_file_than_the_published_one(tmp_path: Path, spoil: Callable[[bytes], bytes], told: str) -> None:
    files = contents()
    last = list(files)[-1]
    error = refused(tmp_path, Server(files | {last: spoil(files[last])}), published(files))
    assert (error.code, error.exit) == ("DATA-SUM", Exit.DATA)
    assert error.where == f"{HOST}/{last}"
    assert told in error.what


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (urllib.error.URLError(socket.gaierror(-2, "Name or service not known")), "Name or service not known"),
        (urllib.error.HTTPError(HOST, 404, "Not Found", None, None), "the server answers 404 Not Found"),  # type: ignore[arg-type]
        (TimeoutError(), "no answer within 30 s"),
        (ConnectionResetError(104, "Connection reset by peer"), "Connection reset by peer"),
    ],
)
def test_without_a_network_the_way_by_hand_is_told(tmp_path: Path, reason: Exception, told: str) -> None:
    files = contents()
    first = next(iter(files))
    error = refused(tmp_path, Server(files | {first: reason}), published(files))
    assert (error.code, error.exit) == ("ENV-NET", Exit.DEVICE)
    assert error.where == f"{HOST}/{first}"
    assert told in error.what
    assert "escala data get mnist --from" in error.next_step


def test_a_connection_that_breaks_in_the_middle(tmp_path: Path) -> None:
    class Breaking(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell():
                raise ConnectionResetError(104, "Connection reset by peer")
            return super().read(100)

    assert refused(tmp_path, lambda _: Breaking(b"x" * 1000), published(contents())).code == "ENV-NET"


def test_a_file_of_unknown_size_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST", 1000)
    files = contents()
    error = refused(tmp_path, Server(files), published(files, sums=False))
    assert (error.code, error.what) == ("DATA-SUM", "is longer than 1,000 bytes")


def test_only_https() -> None:
    for address in ("http://data.example/a", "file:///etc/hostname", "ftp://data.example/a"):
        with pytest.raises(urllib.error.URLError, match="unknown url type"):
            open_https(address)
    for one in PUBLISHED.values():
        assert all(file.address.startswith("https://") for file in one.files)


def test_an_address_without_https_is_not_even_asked_for(tmp_path: Path) -> None:
    files = contents()
    sets = {"mnist": Published((PublishedFile("http://data.example/a"),), "free")}
    assert refused(tmp_path, Server(files), sets).code == "SEC-ADDRESS"


def test_what_is_there_already_stays(tmp_path: Path) -> None:
    files = contents()
    server = Server(files)
    (tmp_path / "mnist").mkdir()
    with pytest.raises(EscalaError) as caught:
        get("mnist", {"ESCALA_DATA": str(tmp_path)}, quiet, opener=server, published=published(files))
    assert (caught.value.code, caught.value.what) == ("DATA-PATH", "is there already")
    assert server.asked == []


def test_names_and_places_that_cannot_be() -> None:
    for name, told in (("synthetic", "drawn"), ("fortunes", "apt install fortunes"), ("nothing", "")):
        with pytest.raises(EscalaError) as caught:
            get(name, {"ESCALA_DATA": "/nowhere"}, quiet)
        assert (caught.value.code, caught.value.exit) == ("CFG-VALUE", Exit.CONFIG)
        assert told in caught.value.next_step
    with pytest.raises(EscalaError) as caught:
        get("mnist", {}, quiet)
    assert "ESCALA_DATA" in caught.value.next_step


@pytest.mark.parametrize("as_folder", [True, False])
def test_files_fetched_by_hand(tmp_path: Path, as_folder: bool) -> None:
    files = contents()
    hand = tmp_path / "hand"
    hand.mkdir()
    for name, data in files.items():
        (hand / name).write_bytes(data)
    given = [hand] if as_folder else [hand / name for name in files]
    got = get("mnist", {}, quiet, to=tmp_path / "set", given=given, opener=Server({}), published=published(files))
    assert {path.name: path.read_bytes() for path in got.folder.iterdir()} == files
    assert len(os.listdir(hand)) == 4


def test_files_by_hand_are_compared_and_missing_ones_named(tmp_path: Path) -> None:
    files = contents()
    hand = tmp_path / "hand"
    hand.mkdir()
    for name, data in list(files.items())[:3]:
        (hand / name).write_bytes(data)
    last = list(files)[-1]
    for spoilt, code in ((None, "DATA-PATH"), (b"something else", "DATA-SUM")):
        if spoilt is not None:
            (hand / last).write_bytes(spoilt)
        with pytest.raises(EscalaError) as caught:
            get("mnist", {}, quiet, to=tmp_path / "set", given=[hand], published=published(files))
        assert caught.value.code == code
        assert f"{HOST}/{last}" in caught.value.where + caught.value.next_step
        assert os.listdir(tmp_path) == ["hand"]


def test_a_set_that_its_reader_refuses_is_not_put_in_place(tmp_path: Path) -> None:
    files = contents()
    files[next(iter(files))] = gzip.compress(b"not what it seems")
    assert refused(tmp_path, Server(files), published(files)).code == "DATA-IDX"
    assert refused(tmp_path, Server({"a.txt": b"a"}), published({"a.txt": b"a"})).code == "DATA-PATH"


def packed(folder: Path, inside: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        archive.add(folder, inside)
    return out.getvalue()


@pytest.mark.parametrize("inside", ["mnist-of-1998", "."])
def test_an_archive_is_unpacked(tmp_path: Path, inside: str) -> None:
    pytest.importorskip("escala.data.archive", reason="the reader of archives is not there")
    data = packed(write_set(tmp_path / "raw", arrays()), inside)
    files = {"mnist.tar.gz": data}
    got = fetch(tmp_path, Server(files), published(files, archive=True))
    assert {path.name for path in got.folder.iterdir()} == set(contents())
    # Renamed by whatever fetched it.
    (tmp_path / "download").write_bytes(data)
    sets = published(files, archive=True)
    got = get("mnist", {}, quiet, to=tmp_path / "set", given=[tmp_path / "download"], published=sets)
    assert {path.name for path in got.folder.iterdir()} == set(contents())


def test_an_unsafe_archive_leaves_nothing(tmp_path: Path) -> None:
    pytest.importorskip("escala.data.archive", reason="the reader of archives is not there")
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        member = tarfile.TarInfo("../escaped.txt")
        member.size = 1
        archive.addfile(member, io.BytesIO(b"x"))
    files = {"mnist.tar.gz": out.getvalue()}
    error = refused(tmp_path, Server(files), published(files, archive=True))
    assert (error.code, error.exit) == ("SEC-ARCHIVE", Exit.UNSAFE)
    assert not list(tmp_path.rglob("escaped.txt"))


def test_the_table_of_publishers() -> None:
    for name, one in PUBLISHED.items():
        assert len({file.name for file in one.files}) == len(one.files)
        assert not one.archive or len(one.files) == 1
        for file in one.files:
            assert file.sha256 is None or (len(file.sha256) == 64 and int(file.sha256, 16)), name
