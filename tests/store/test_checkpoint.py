"""Checkpoints that are cut, changed, half written or planted."""

from __future__ import annotations

import os
import pickle
import random
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from escala.store import checkpoint, files
from escala.store.checkpoint import (
    MARK,
    META,
    MODEL,
    STATE,
    Checkpoint,
    Meta,
    check_keys,
    name_of,
    newest,
    open_checkpoint,
    save,
)
from escala.terms.errors import EscalaError, Exit

FILES = (MODEL, STATE, META, MARK)


def meta(step: int) -> Meta:
    return Meta(
        step=step,
        epoch=1,
        done=step,
        order="0123456789ab",
        seed=3,
        batch=64,
        optimizer="sgd",
        workload="mlp",
        data="",
        precision="fp32",
        strategy="ddp",
        ways=2,
        seats=2,
        progress={"train_s": 0.1 + 0.2},
    )


def arrays(step: int) -> tuple[bytes, bytes]:
    drawn = random.Random(step)
    return drawn.randbytes(4000), drawn.randbytes(900)


def made(folder: Path, *steps: int) -> Path:
    for step in steps:
        save(folder, meta(step), *arrays(step))
    return folder


def found(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    told = list[str]()
    return newest(folder, told.append), told


def test_what_was_saved_comes_back_and_the_last_two_stay(tmp_path: Path) -> None:
    folder = made(tmp_path / "checkpoints", 5, 80, 123_456_789)
    assert sorted(os.listdir(folder)) == ["step-00000080", "step-123456789"]
    last, told = found(folder)
    assert last is not None
    assert (last.meta, told) == (meta(123_456_789), [])
    assert (last.arrays(MODEL), last.arrays(STATE)) == arrays(123_456_789)


def test_the_newest_goes_by_number_not_by_name(tmp_path: Path) -> None:
    last, _ = found(made(tmp_path, 99_999_999, 100_000_000))
    assert last is not None
    assert last.meta.step == 100_000_000


def test_nothing_there_is_no_checkpoint_and_no_error(tmp_path: Path) -> None:
    assert found(tmp_path / "none") == (None, [])
    assert found(tmp_path) == (None, [])


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("cut", ["0", "10", "half", "size - 1", "one bit", "absent"])
def test_a_damaged_one_is_set_aside_and_the_previous_used(tmp_path: Path, name: str, cut: str) -> None:
    folder = made(tmp_path, 10, 20)
    path = folder / name_of(20) / name
    data = path.read_bytes()
    if cut == "absent":
        path.unlink()
    elif cut == "one bit":
        place = random.Random(name).randrange(len(data))
        path.write_bytes(data[:place] + bytes((data[place] ^ 4,)) + data[place + 1 :])
    else:
        lengths = {"0": 0, "10": 10, "half": len(data) // 2, "size - 1": len(data) - 1}
        path.write_bytes(data[: lengths[cut]])
    last, told = found(folder)
    assert last is not None
    assert last.meta.step == 10
    assert len(told) == 1
    assert f"{name_of(20)} is damaged" in told[0]
    assert (folder / f"damaged-{name_of(20)}").is_dir()
    # The way on is free: the same step can be made again, and is then the newest.
    last, told = found(made(folder, 20))
    assert last is not None
    assert (last.meta.step, told) == (20, [])


def test_every_single_bit_of_the_mark_counts(tmp_path: Path) -> None:
    folder = made(tmp_path, 10)
    path = folder / name_of(10) / MARK
    data = path.read_bytes()
    for place in range(len(data)):
        path.write_bytes(data[:place] + bytes((data[place] ^ 1 << place % 8,)) + data[place + 1 :])
        with pytest.raises(EscalaError, match="CKPT-DAMAGED"):
            open_checkpoint(folder / name_of(10))
    path.write_bytes(data)
    assert open_checkpoint(folder / name_of(10)).meta.step == 10


def test_where_none_is_whole_it_says_so_now_and_later(tmp_path: Path) -> None:
    folder = made(tmp_path, 10, 20)
    for step in (10, 20):
        (folder / name_of(step) / MODEL).write_bytes(b"")
    for _ in range(2):
        with pytest.raises(EscalaError, match=r"CKPT-NONE.*none of 2 checkpoints is whole") as raised:
            found(folder)
        assert raised.value.exit == Exit.DATA


@pytest.mark.parametrize("moment", range(9))
def test_a_kill_at_any_moment_of_saving_leaves_the_previous_whole(tmp_path: Path, moment: int) -> None:
    """Moments: in the middle and at the end of each of four files, and before the rename."""
    folder = made(tmp_path, 10, 20)
    child = os.fork()
    if child == 0:
        calls = iter(range(100))
        write, rename = files.write_all, os.rename

        def dying(descriptor: int, data: bytes) -> None:
            if next(calls) == moment:
                write(descriptor, data[: len(data) // 2])
                os._exit(9)
            write(descriptor, data)
            if next(calls) == moment:
                os._exit(9)

        def dying_rename(old: Path, new: Path) -> None:
            if moment == 8:
                os._exit(9)
            rename(old, new)

        files.write_all, os.rename = dying, dying_rename  # type: ignore[assignment]
        save(folder, meta(30), *arrays(30))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    last, told = found(folder)
    assert last is not None
    assert (last.meta.step, told) == (20, [])
    assert last.arrays(MODEL) == arrays(20)[0]
    made(folder, 30)
    assert sorted(os.listdir(folder)) == [name_of(20), name_of(30)]


def test_the_same_step_again_changes_nothing(tmp_path: Path) -> None:
    folder = made(tmp_path, 10)
    before = (folder / name_of(10)).stat().st_mtime_ns
    made(folder, 10)
    assert (folder / name_of(10)).stat().st_mtime_ns == before


def test_too_little_room_is_said_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = made(tmp_path, 10)
    monkeypatch.setattr(files, "_free_bytes", lambda _: 5000)
    monkeypatch.setattr(checkpoint, "write_new", lambda *_: pytest.fail("something was written"))
    with pytest.raises(EscalaError, match=r"ENV-DISK.*step-00000020.*No space left.*bytes needed, 5,000 bytes free"):
        made(folder, 20)
    assert os.listdir(folder) == [name_of(10)]


def test_a_disk_that_fills_up_while_saving_leaves_the_earlier_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made(tmp_path, 10, 20)
    write = os.write

    def full(descriptor: int, data: memoryview) -> int:
        if len(data) < 2000:
            raise OSError(28, "")
        return write(descriptor, data[:2500])

    with monkeypatch.context() as patched:
        patched.setattr(files.os, "write", full)
        with pytest.raises(EscalaError, match=r"ENV-DISK.*step-00000030.*No space left.*needed.*free") as raised:
            made(folder, 30)
    assert raised.value.exit == Exit.DEVICE
    assert sorted(os.listdir(folder)) == [name_of(10), name_of(20)]
    last, told = found(made(folder, 30))
    assert last is not None
    assert (last.meta.step, told) == (30, [])


def test_a_full_disk(small_disk: Callable[[str], Path]) -> None:
    place = small_disk("size=128k")
    folder = made(place / "checkpoints", 10)
    (place / "filler").write_bytes(bytes(60_000))
    with pytest.raises(EscalaError, match=r"ENV-DISK.*bytes needed, .* bytes free"):
        made(folder, 20)
    assert os.listdir(folder) == [name_of(10)]
    (place / "filler").unlink()
    last, _ = found(made(folder, 20))
    assert last is not None
    assert last.meta.step == 20


class Trap:
    """Pickled, it makes a file when it is opened."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return os.mkdir, (str(self.marker),)


def bare(trap: bytes, path: Path) -> None:
    path.write_bytes(trap)


def as_torch_does(trap: bytes, path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", trap)


NAMES = ("step-00000020.pt", "old.bin", f"{name_of(20)}/.metadata", f"{name_of(20)}/__0_0.distcp")
# Without a telling name it is known by its first bytes; protocol 0 has none, and nothing ever opens such a file.
PLANTED = [(name, protocol) for name in NAMES for protocol in (0, 4)] + [("weights", 2), ("weights", 5)]


@pytest.mark.parametrize("write", [bare, as_torch_does])
@pytest.mark.parametrize(("where", "protocol"), PLANTED)
def test_no_pickle_is_opened(tmp_path: Path, where: str, protocol: int, write: Callable[[bytes, Path], None]) -> None:
    folder, marker = made(tmp_path / "checkpoints", 10), tmp_path / "marker"
    (folder / where).parent.mkdir(exist_ok=True)
    write(pickle.dumps(Trap(marker), protocol), folder / where)
    with pytest.raises(EscalaError, match=r"SEC-PICKLE.*not opened") as raised:
        found(folder)
    with pytest.raises(EscalaError, match="SEC-PICKLE"):
        open_checkpoint(folder / where)
    assert raised.value.exit == Exit.UNSAFE
    assert not marker.exists()
    pickle.loads(pickle.dumps(Trap(marker), protocol))  # noqa: S301
    assert marker.exists(), "the trap does not work, so this shows nothing"


@pytest.mark.parametrize("name", [MODEL, STATE])
def test_a_planted_pickle_with_a_right_checksum_is_refused(tmp_path: Path, name: str) -> None:
    folder, marker = tmp_path / "checkpoints", tmp_path / "marker"
    trap = pickle.dumps(Trap(marker))
    save(folder, meta(10), *((trap, b"") if name == MODEL else (b"", trap)))
    with pytest.raises(EscalaError, match="SEC-PICKLE"):
        found(folder)
    with pytest.raises(EscalaError, match="SEC-PICKLE"):
        Checkpoint(folder / name_of(10), meta(10)).arrays(name)
    assert not marker.exists()


def test_safetensors_that_begin_like_a_pickle_are_not_mistaken_for_one(tmp_path: Path) -> None:
    begins = (0x0580).to_bytes(8, "little") + b"{" + bytes(100)
    save(tmp_path, meta(10), begins, begins)
    last, _ = found(tmp_path)
    assert last is not None
    assert last.arrays(MODEL) == begins


def test_what_is_no_folder_of_ours_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(EscalaError, match=r"SEC-PICKLE.*no checkpoint of escala"):
        open_checkpoint(tmp_path / "notes")
    # Beside checkpoints it harms nobody.
    assert found(tmp_path) == (None, [])


def test_a_checkpoint_of_a_later_version_is_left_alone(tmp_path: Path) -> None:
    made(tmp_path, 10)
    save(tmp_path, msgspec.structs.replace(meta(20), schema=2), b"", b"")
    with pytest.raises(EscalaError, match=r"CKPT-SCHEMA.*schema 2.*up to 1") as raised:
        found(tmp_path)
    assert raised.value.exit == Exit.DATA
    assert (tmp_path / name_of(20)).exists()


def test_links_and_pipes_in_a_checkpoint_are_damage_not_a_wait(tmp_path: Path) -> None:
    folder = made(tmp_path, 10, 20)
    path = folder / name_of(20) / STATE
    path.unlink()
    os.mkfifo(path)
    last, told = found(folder)
    assert last is not None
    assert (last.meta.step, "no file" in told[0]) == (10, True)
    shutil.copy(folder / name_of(10) / MODEL, tmp_path / "elsewhere")
    (folder / name_of(10) / MODEL).unlink()
    (folder / name_of(10) / MODEL).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EscalaError, match="CKPT-NONE"):
        found(folder)


def test_keys_that_differ_are_named_the_first_five() -> None:
    wanted = {f"layer{number}.weight": (3, 2) for number in range(4)}
    check_keys(wanted, dict(wanted), "here")
    given = {"layer0.weight": (2, 3), "other.bias": (), "layer3.weight": (3, 2), "module.layer1.weight": (3, 2)}
    with pytest.raises(EscalaError) as raised:
        check_keys(wanted, given, "here")
    text = str(raised.value)
    assert (raised.value.code, raised.value.exit) == ("CKPT-KEYS", Exit.DATA)
    for words in (
        "layer1.weight is missing",
        "layer2.weight is missing",
        "other.bias is unexpected",
        "module.layer1.weight is unexpected",
        "layer0.weight has the shape 2x3, not 3x2",
    ):
        assert words in text
    with pytest.raises(EscalaError, match="and 3 more"):
        check_keys({}, {f"{number}": () for number in range(8)}, "here")
