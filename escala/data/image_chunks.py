"""Some image files decoded and brought to one size: a file in a work folder, made by one process, read by another.

A chunk is a line of JSON and the pixels behind it. It is renamed into place when it is written and has its checksum,
so that what is found under its name after a kill or a power cut is whole or made again.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import secrets
import signal
import threading
import warnings
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from escala.data.base import Inputs
from escala.data.image_scan import BAD, read_open
from escala.data.paths import open_file
from escala.store.files import TEMPORARY, disk_errors
from escala.terms.errors import EscalaError

_BUFFER = 1024 * 1024
_LONGEST_LINE = 16 * 1024 * 1024


@dataclass(frozen=True)
class Job:
    """Files to decode, as (path relative to `folder`, name of its class), into the file `out`."""

    folder: Path
    files: tuple[tuple[str, str], ...]
    out: Path
    size: tuple[int, int]
    grey: bool

    @property
    def row(self) -> tuple[int, ...]:
        """The shape of one image."""
        width, height = self.size
        return (height, width) if self.grey else (3, height, width)


@dataclass(frozen=True)
class Chunk:
    """A finished job. `digests` are sha256 in hex of all its files; `bad` maps damaged ones to what is wrong.

    The pixels of the others stand in the file from byte `offset` on, in the order of the job.
    """

    digests: tuple[str, ...]
    bad: dict[str, EscalaError]
    offset: int


def make_chunk(job: Job) -> dict[str, str] | None:
    """Decode the files of a job. Returns the error that ends the work as plain data; None: it is done."""
    try:
        _write(job, *_decoded(job))
    except EscalaError as error:
        # An error of this kind does not survive the way between processes.
        return error.to_dict()
    return None


def read_chunk(job: Job, *, verify: bool = True) -> Chunk | None:
    """What a job has left; None where it was not finished or the file is damaged.

    Without `verify` the checksum is not looked at, which a file that was written a moment ago does not need.
    """
    try:
        with job.out.open("rb") as file:
            line = file.readline(_LONGEST_LINE)
            digest = _digest(file) if verify else ""
        head: dict[str, Any] = json.loads(line)
        if (verify and head["sha256"] != digest) or len(head["digests"]) != len(job.files):
            return None
        bad = {path: EscalaError.from_dict(error) for path, error in head["bad"].items()}
        return Chunk(tuple(head["digests"]), bad, len(line))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def chunk_rows(job: Job, chunk: Chunk) -> Inputs:
    """The images of a chunk, [files that are not bad, *row], mapped from its file."""
    rows = len(job.files) - len(chunk.bad)
    if rows == 0:
        return np.empty((0, *job.row), np.uint8)
    return np.asarray(np.memmap(job.out, np.uint8, "r", chunk.offset, (rows, *job.row)))


def begin_worker() -> None:
    """What a process that makes chunks does first: it leaves Ctrl-C to its parent, and ends when that is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # They would be printed between the lines of a progress bar, and say nothing of which file is meant.
    warnings.simplefilter("ignore")
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


def _digest(file: BinaryIO) -> str:
    """Of what is left of a file, in hex."""
    seen = hashlib.sha256()
    while piece := file.read(_BUFFER):
        seen.update(piece)
    return seen.hexdigest()


def _content(file: BinaryIO) -> tuple[BinaryIO, str]:
    """What an image is decoded from, and its digest: a file that is not large is read once for both."""
    data = file.read(_BUFFER)
    if len(data) < _BUFFER:
        return BytesIO(data), hashlib.sha256(data).hexdigest()
    file.seek(0)
    digest = _digest(file)
    file.seek(0)
    return file, digest


def _decoded(job: Job) -> tuple[list[Inputs], list[str], dict[str, EscalaError]]:
    rows, digests, bad = list[Inputs](), list[str](), dict[str, EscalaError]()
    for relative, class_name in job.files:
        path = job.folder / relative
        with open_file(path) as file:
            with disk_errors(path, doing="read"):
                content, digest = _content(file)
            digests.append(digest)
            try:
                rows.append(read_open(content, path, class_name, grey=job.grey, size=job.size))
            except EscalaError as error:
                if error.code not in BAD:
                    raise
                bad[relative] = error
    return rows, digests, bad


def _write(job: Job, rows: list[Inputs], digests: list[str], bad: dict[str, EscalaError]) -> None:
    pixels = np.concatenate([row.reshape(-1) for row in rows]) if rows else np.empty(0, np.uint8)
    head = {
        "digests": digests,
        "bad": {path: error.to_dict() for path, error in bad.items()},
        "sha256": hashlib.sha256(pixels.data).hexdigest(),
    }
    temporary = job.out.parent / f"{TEMPORARY}{secrets.token_hex(8)}"
    with disk_errors(job.out, pixels.nbytes):
        try:
            # Not brought to the disk by force: the checksum finds what a power cut would take.
            with temporary.open("wb") as file:
                file.write(json.dumps(head).encode() + b"\n")
                file.write(pixels.data)
            os.replace(temporary, job.out)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
