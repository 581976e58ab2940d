"""One campaign, one escala, tried with real processes."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

import escala
from escala.store import lock
from escala.store.lock import Owner, hold
from escala.terms.errors import EscalaError, Exit

HOLDS = """
import sys
from pathlib import Path
from escala.store.lock import hold
with hold(Path(sys.argv[1])) as note:
    assert note is None, note
    print("torch" in sys.modules, flush=True)
    sys.stdin.read()
"""
HOLDS_WITH_CHILD = """
import os, sys
from pathlib import Path
from escala.store.lock import hold
with hold(Path(sys.argv[1])):
    if not os.fork():
        sys.stdin.read()
        os._exit(0)
    print("holding", flush=True)
    os.wait()
"""
COUNTS = """
import sys
from pathlib import Path
from escala.store.lock import hold
from escala.terms.errors import EscalaError
folder, count = Path(sys.argv[1]), Path(sys.argv[2])
done = 0
while done < 25:
    try:
        with hold(folder) as note:
            assert note is None, note
            count.write_text(str(int(count.read_text()) + 1))
            done += 1
    except EscalaError as error:
        assert error.code == "ENV-LOCK", error
"""

Start = Callable[[str, Path], "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start Python on a script with arguments; it ends with the test."""
    started: list[subprocess.Popen[str]] = []

    def begin(script: str, *arguments: Path) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", script, *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": str(Path(escala.__file__).parents[1])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def leave(folder: Path, owner: Owner) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "lock").write_bytes(msgspec.json.encode(owner))


def me(*, started: float = 0.0, host: str = "") -> Owner:
    return Owner(os.getpid(), host or socket.gethostname(), psutil.Process().create_time() + started)


def test_the_lock_names_its_holder_and_goes_with_it(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "campaign"
    with hold(folder) as note:
        assert note is None
        owner = msgspec.json.decode((folder / "lock").read_bytes(), type=Owner)
        assert owner == me()
    assert list(folder.iterdir()) == []


def test_it_goes_with_its_holder_after_an_error_too(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mine"), hold(tmp_path):
        raise ValueError("mine")
    assert list(tmp_path.iterdir()) == []


def test_a_second_escala_is_refused_until_the_first_has_ended(tmp_path: Path, start: Start) -> None:
    first = start(HOLDS, tmp_path)
    assert said(first) == "False", "the lock must not import torch"
    content = (tmp_path / "lock").read_bytes()
    with pytest.raises(EscalaError) as caught, hold(tmp_path):
        pass
    assert (caught.value.code, caught.value.exit) == ("ENV-LOCK", Exit.DEVICE)
    assert f"process {first.pid} on host {socket.gethostname()}" in str(caught.value)
    assert (tmp_path / "lock").read_bytes() == content
    first.communicate("")
    assert first.returncode == 0
    with hold(tmp_path) as note:
        assert note is None


def test_the_same_process_cannot_hold_it_twice(tmp_path: Path) -> None:
    with hold(tmp_path):
        with pytest.raises(EscalaError, match=f"process {os.getpid()} "), hold(tmp_path):
            pass
        assert (tmp_path / "lock").exists()


@pytest.mark.parametrize("reaped", [True, False])
def test_the_lock_of_a_killed_process_is_taken_over_with_a_note(tmp_path: Path, start: Start, reaped: bool) -> None:
    first = start(HOLDS, tmp_path)
    assert said(first) == "False"
    first.kill()
    # Its remains stay in the process table if nobody asks how it ended.
    os.waitid(os.P_PID, first.pid, os.WEXITED | (0 if reaped else os.WNOWAIT))
    with hold(tmp_path) as note:
        assert note == f"took over the lock of process {first.pid}, which has ended"
    assert list(tmp_path.iterdir()) == []


def test_a_child_left_behind_still_holds_it(tmp_path: Path, start: Start) -> None:
    first = start(HOLDS_WITH_CHILD, tmp_path)
    assert said(first) == "holding"
    first.kill()
    first.wait()
    with pytest.raises(EscalaError, match=f"a child of process {first.pid} .* still holds it"), hold(tmp_path):
        pass
    first.communicate("")
    with hold(tmp_path) as note:
        assert note == f"took over the lock of process {first.pid}, which has ended"


def test_only_one_of_many_holds_it_at_a_time(tmp_path: Path, start: Start) -> None:
    count = tmp_path / "count"
    count.write_text("0")
    processes = [start(COUNTS, tmp_path / "campaign", count) for _ in range(3)]
    assert [process.wait(timeout=30) for process in processes] == [0, 0, 0]
    assert count.read_text() == "75"


def test_a_file_removed_while_it_is_being_locked_counts_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_flock = fcntl.flock
    removed: list[int] = []

    def holder_ends(descriptor: int, operation: int) -> None:
        if not removed:
            removed.append(os.fstat(descriptor).st_ino)
            (tmp_path / "lock").unlink()
        real_flock(descriptor, operation)

    monkeypatch.setattr(lock.fcntl, "flock", holder_ends)
    with hold(tmp_path):
        assert removed
        monkeypatch.undo()
        with pytest.raises(EscalaError, match=f"process {os.getpid()} "), hold(tmp_path):
            pass


def test_a_number_that_another_process_has_now_is_taken_over(tmp_path: Path) -> None:
    leave(tmp_path, me(started=-1000.0))
    with hold(tmp_path) as note:
        assert note == (
            f"took over the lock of process {os.getpid()}, which has ended; another process has its number now"
        )


@pytest.mark.parametrize("pid", [0, -1, 2**22 + 1, 2**70])
def test_a_number_that_no_process_has_is_taken_over(tmp_path: Path, pid: int) -> None:
    leave(tmp_path, Owner(pid, socket.gethostname(), 1.0))
    with hold(tmp_path) as note:
        assert note is not None


def test_a_living_holder_is_respected_where_advisory_locks_do_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOSYS, "")

    monkeypatch.setattr(lock.fcntl, "flock", unsupported)
    with hold(tmp_path):
        with pytest.raises(EscalaError, match=f"process {os.getpid()} .* works on this campaign"), hold(tmp_path):
            pass
        assert (tmp_path / "lock").exists()
    leave(tmp_path, Owner(2**22 + 1, socket.gethostname(), 1.0))
    with hold(tmp_path) as note:
        assert note is not None


def test_a_lock_from_another_host_is_refused_with_the_way_to_remove_it(tmp_path: Path) -> None:
    leave(tmp_path, me(host="elsewhere"))
    content = (tmp_path / "lock").read_bytes()
    with pytest.raises(EscalaError) as caught, hold(tmp_path):
        pass
    text = str(caught.value)
    assert (caught.value.code, caught.value.exit) == ("ENV-LOCK", 4)
    assert f"process {os.getpid()} on host elsewhere" in text
    assert f"remove {tmp_path / 'lock'}" in text
    assert (tmp_path / "lock").read_bytes() == content


@pytest.mark.parametrize("content", [b"somebody's notes", b"[1, 2]", b'{"pid": 1}', b'{"pid":' * 5000])
def test_a_file_that_is_no_lock_is_left_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "lock").write_bytes(content)
    with pytest.raises(EscalaError, match=r"ENV-LOCK.* no lock of escala"), hold(tmp_path):
        pass
    assert (tmp_path / "lock").read_bytes() == content


def test_an_empty_file_is_what_a_kill_at_the_first_moment_leaves(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    with hold(tmp_path) as note:
        assert note is None


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("")
    folder = tmp_path / "campaign"
    folder.mkdir()
    (folder / "lock").symlink_to(tmp_path / "precious")
    with pytest.raises(EscalaError, match=r"ENV-DISK.* symbolic links"), hold(folder):
        pass
    assert (tmp_path / "precious").read_text() == ""


def test_a_lock_removed_and_taken_by_another_is_not_removed_again(tmp_path: Path) -> None:
    with hold(tmp_path):
        (tmp_path / "lock").unlink()
        (tmp_path / "lock").write_text("another's")
    assert (tmp_path / "lock").read_text() == "another's"


def test_a_full_disk_leaves_no_lock(small_disk: Callable[[str], Path]) -> None:
    place = small_disk("size=64k")
    (place / "filler").write_bytes(b"f" * 65_536)
    with pytest.raises(EscalaError, match=r"ENV-DISK.*lock: cannot write: No space left"), hold(place):
        pass
    assert [file.name for file in place.iterdir()] == ["filler"]


def test_a_folder_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name, words in {"file": "Not a directory", "loop": "Too many levels of symbolic links"}.items():
        with pytest.raises(EscalaError, match=f"ENV-DISK.*{words}"), hold(tmp_path / name):
            pass


def test_a_holder_that_must_not_be_looked_at_is_taken_for_alive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hidden(process: psutil.Process) -> str:
        raise psutil.AccessDenied(process.pid)

    leave(tmp_path, me())
    monkeypatch.setattr(psutil.Process, "status", hidden)
    with pytest.raises(EscalaError, match="works on this campaign"), hold(tmp_path):
        pass
