"""Checkpoints of a training: folders that are whole or not there, of which the newest sound one is found.

    checkpoints/step-00001234/
        model.safetensors   weights under the person's own names
        state.safetensors   everything else that is an array: optimiser, random generators, loss curve
        meta.json           everything else that is not: `Meta`
        complete.json       sizes and checksums of the three, written last: the mark that they are whole

No file of ours is a pickle, and none is ever opened as one. The arrays' format:
https://huggingface.co/docs/safetensors/index
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from escala.store.files import TEMPORARY, check_room, disk_errors, names_in, sync_folder, write_new
from escala.terms.errors import EscalaError

SCHEMA = 1
KEPT = 2
"""Checkpoints that stay: the newest, and one before it in case that the newest is damaged."""
MODEL = "model.safetensors"
STATE = "state.safetensors"
META = "meta.json"
MARK = "complete.json"

_PARTS = (MODEL, STATE, META)
_NAME = re.compile(r"step-(\d{8,18})")
_SET_ASIDE = "damaged-"
_SLACK = 64 << 10
_LONGEST_MARK = 4096
_PICKLED_NAMES = (".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".bin", ".joblib", ".distcp", ".metadata")
# The first bytes of pickles of protocols 2 to 5, and of the archives that torch keeps pickles in.
_PICKLED_BYTES = (b"PK\x03\x04", *(bytes((0x80, protocol)) for protocol in range(2, 6)))
_HEAD = 9
_SHOWN = 5

Shapes = Mapping[str, tuple[int, ...]]


class Meta(Struct, frozen=True, kw_only=True):
    """What a checkpoint says beside its arrays.

    `step` optimiser steps are made, `done` of them in `epoch` (from 0), whose rows come in the order with the digest
    `order`. `shares`: among how many replicas the seats divided the rows; None: every seat was
    one. `strategy`, `ways` and `software` are for information: any strategy goes on from it. `learner` and
    `progress` are what the run puts there, `extra` is free.
    """

    step: int
    epoch: int
    done: int
    order: str
    seed: int
    batch: int
    optimizer: str
    workload: str
    data: str
    precision: str
    strategy: str
    ways: int
    seats: int
    shares: int | None = None
    software: dict[str, str] = field(default_factory=dict)
    learner: Any = None
    progress: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
    schema: int = SCHEMA


class _Part(Struct, frozen=True, forbid_unknown_fields=True):
    size: int
    checksum: str


class _Mark(Struct, frozen=True, forbid_unknown_fields=True):
    files: dict[str, _Part]


class _Version(Struct):
    schema: int


@dataclass(frozen=True)
class Checkpoint:
    """A folder that was found whole, and what it says of itself."""

    folder: Path
    meta: Meta

    def arrays(self, name: str) -> bytes:
        """The whole file `MODEL` or `STATE`, its checksum verified once more. Raises CKPT-DAMAGED, SEC-PICKLE."""
        data = _part(self.folder, name, _mark(self.folder).files[name])
        if _is_pickle(data[:_HEAD]):
            raise _pickled(self.folder / name)
        return data


def name_of(step: int) -> str:
    """A checkpoint's folder by its step; names sort as steps do."""
    return f"step-{step:08}"


def save(folder: Path, meta: Meta, model: bytes, state: bytes) -> Path:
    """Add a checkpoint to `folder`, look it over, then remove all but the last `KEPT`. Returns its folder.

    Returns when all of it is on the disk. Raises ENV-DISK, with the earlier checkpoints as they were; where there is
    too little room that is said before anything is written.
    """
    parts = {MODEL: model, STATE: state, META: msgspec.json.encode(meta)}
    mark = _Mark({name: _Part(len(data), _sum(data)) for name, data in parts.items()})
    files = {**parts, MARK: msgspec.json.encode(mark)}
    place, needed = folder / name_of(meta.step), sum(map(len, files.values()))
    with disk_errors(folder):
        names_in(folder)
    _forget_half_written(folder)
    check_room(place, needed + _SLACK)
    if place.exists():
        if _fault(place) is None:
            return place
        set_aside(place)
    temporary = folder / f"{TEMPORARY}{secrets.token_hex(8)}"
    with disk_errors(place, needed):
        try:
            temporary.mkdir()
            for name, data in files.items():
                write_new(temporary / name, data)
            sync_folder(temporary)
            os.rename(temporary, place)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        sync_folder(folder)
    if fault := _fault(place):
        raise EscalaError("ENV-DISK", str(place), f"does not read back as it was written: {fault}")
    for step in sorted(_steps(folder))[:-KEPT]:
        shutil.rmtree(folder / name_of(step), ignore_errors=True)
    return place


def newest(folder: Path, say: Callable[[str], None]) -> Checkpoint | None:
    """The newest whole checkpoint in `folder`; None: none was ever made. Nothing in it is executed.

    Damaged and incomplete ones are set aside under another name, which `say` is told. Raises CKPT-NONE where none of
    those that are there is whole, SEC-PICKLE where something there is not ours, CKPT-SCHEMA, ENV-DISK.
    """
    with disk_errors(folder, doing="read"):
        try:
            names = sorted(os.listdir(folder), reverse=True)
        except FileNotFoundError:
            return None
    for name in names:
        if not name.startswith((_SET_ASIDE, TEMPORARY)):
            _refuse_pickles(folder / name)
    broken = sum(name.startswith(_SET_ASIDE) for name in names)
    for step in sorted(_steps(folder), reverse=True):
        place = folder / name_of(step)
        if (fault := _fault(place)) is None:
            return Checkpoint(place, _meta(place))
        say(f"checkpoint {place.name} is damaged ({fault}); it was set aside as {set_aside(place).name}")
        broken += 1
    if not broken:
        return None
    raise EscalaError(
        "CKPT-NONE",
        str(folder),
        f"none of {broken} checkpoints is whole",
        next_step="put a sound copy back, or begin anew with another --out folder",
    )


def open_checkpoint(place: Path) -> Checkpoint:
    """The checkpoint in the folder `place`. Raises CKPT-DAMAGED, SEC-PICKLE, CKPT-SCHEMA."""
    _refuse_pickles(place)
    if not place.is_dir():
        raise EscalaError(
            "SEC-PICKLE",
            str(place),
            "is no checkpoint of escala, and is not opened",
            expected=f"a folder such as {name_of(1234)}",
        )
    if fault := _fault(place):
        raise _damaged(place, fault)
    return Checkpoint(place, _meta(place))


def set_aside(place: Path) -> Path:
    """Rename a damaged checkpoint, so that it is neither used nor lost. Returns its new place. Raises ENV-DISK."""
    number, side = 1, place.with_name(f"{_SET_ASIDE}{place.name}")
    while os.path.lexists(side):
        number += 1
        side = place.with_name(f"{_SET_ASIDE}{place.name}-{number}")
    with disk_errors(place):
        os.rename(place, side)
    return side


def check_keys(wanted: Shapes, found: Shapes, where: str) -> None:
    """Refuse arrays that are not, name by name and shape by shape, those that are wanted. Raises CKPT-KEYS."""
    faults = [f"{name} is missing" for name in wanted if name not in found]
    faults += [f"{name} is unexpected" for name in found if name not in wanted]
    faults += [
        f"{name} has the shape {_shape(found[name])}, not {_shape(shape)}"
        for name, shape in wanted.items()
        if name in found and tuple(found[name]) != tuple(shape)
    ]
    if faults:
        more = f" and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        raise EscalaError(
            "CKPT-KEYS",
            where,
            f"is of another network: {', '.join(faults[:_SHOWN])}{more}",
            next_step="give the workload and options that it was made with, or another --out folder",
        )


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "of a single number"


def _steps(folder: Path) -> list[int]:
    with disk_errors(folder, doing="read"):
        found = [_NAME.fullmatch(name) for name in os.listdir(folder)]
    return [int(match[1]) for match in found if match and match[0] == name_of(int(match[1]))]


def _forget_half_written(folder: Path) -> None:
    """Remove what a kill in the middle of `save` left behind; the lock on the whole folder makes it nobody's."""
    with disk_errors(folder):
        for name in names_in(folder):
            if name.startswith(TEMPORARY):
                shutil.rmtree(folder / name, ignore_errors=True)


def _sum(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def _fault(place: Path) -> str | None:
    """What is wrong with a checkpoint's files; None: they are as they were written. Raises ENV-DISK."""
    try:
        mark = _mark(place)
        for name in _PARTS:
            _part(place, name, mark.files[name])
    except EscalaError as error:
        if error.code != "CKPT-DAMAGED":
            raise
        return error.what
    return None


def _mark(place: Path) -> _Mark:
    """The mark of a whole checkpoint. Raises CKPT-DAMAGED."""
    data = _read(place, MARK, None)
    try:
        mark = msgspec.json.decode(data, type=_Mark)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise _damaged(place, f"{MARK} cannot be understood") from None
    if set(mark.files) != set(_PARTS):
        raise _damaged(place, f"{MARK} names other files")
    return mark


def _part(place: Path, name: str, known: _Part) -> bytes:
    data = _read(place, name, known.size)
    if _sum(data) != known.checksum:
        raise _damaged(place, f"the checksum of {name} differs")
    return data


def _read(place: Path, name: str, size: int | None) -> bytes:
    """A regular file of exactly that size, or, where it is None, a small one."""
    path = place / name
    with disk_errors(path, doing="read"):
        try:
            found = os.lstat(path)
            wrong = found.st_size != size if size is not None else found.st_size > _LONGEST_MARK
            if not stat.S_ISREG(found.st_mode):
                raise _damaged(place, f"{name} is no file")
            if wrong:
                raise _damaged(place, f"{name} has {found.st_size:,} bytes" + (f" of {size:,}" if size else ""))
            return path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            raise _damaged(place, f"it is incomplete: there is no {name}") from None


def _meta(place: Path) -> Meta:
    data = (place / META).read_bytes()
    try:
        version = msgspec.json.decode(data, type=_Version).schema
        if version <= SCHEMA:
            return msgspec.json.decode(data, type=Meta)
        what = f"has schema {version}, this version reads up to {SCHEMA}"
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        # The sum is right, so this is what was written, by a version with other fields or by another program.
        what = f"is whole, but no checkpoint of schema {SCHEMA}: {error}"
    next_step = "install the version of escala that made it"
    raise EscalaError("CKPT-SCHEMA", str(place), what, next_step=next_step)


def _refuse_pickles(place: Path) -> None:
    """Look at names and first bytes, never at more. Raises SEC-PICKLE."""
    with disk_errors(place, doing="read"):
        inner = list(place.iterdir()) if place.is_dir() else [place]
        for path in inner:
            if path.name.lower().endswith(_PICKLED_NAMES) or _begins_as_pickle(path):
                raise _pickled(path)


def _begins_as_pickle(path: Path) -> bool:
    with suppress(FileNotFoundError):
        if stat.S_ISREG(os.lstat(path).st_mode):
            with path.open("rb") as file:
                return _is_pickle(file.read(_HEAD))
    return False


def _is_pickle(head: bytes) -> bool:
    # A header of 1,408 bytes begins a file of safetensors with the bytes of a pickle, too; but no pickle goes on so.
    as_safetensors = head[4:8] == bytes(4) and head[8:] == b"{"
    return head.startswith(_PICKLED_BYTES) and not as_safetensors


def _pickled(path: Path) -> EscalaError:
    return EscalaError(
        "SEC-PICKLE",
        str(path),
        "is or may hold a pickle, which runs code when it is opened; it was not opened",
        expected="checkpoints that escala train wrote: safetensors and JSON",
        next_step="move it out of the folder",
    )


def _damaged(place: Path, what: str) -> EscalaError:
    return EscalaError("CKPT-DAMAGED", str(place), what, next_step="use an earlier checkpoint")
