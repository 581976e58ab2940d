"""A folder of images, decoded, brought to one size and split once, into one file that `prepared_images` reads.

Decoding is what takes the time, so it is shared among processes and kept: finished chunks lie in a work folder beside
the result until that is written, in a folder named by the files' names, sizes and times and by the settings. The same
command goes on where it was ended.
"""

from __future__ import annotations

import errno
import hashlib
import json
import multiprocessing
import os
import secrets
import shutil
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.data.base import Inputs, Part
from escala.data.image_chunks import Chunk, Job, begin_worker, chunk_rows, make_chunk, read_chunk
from escala.data.image_folder import MOST_SKIPPED, check_skipped
from escala.data.image_tree import SHARES, ImageFile, Shares, Tree, deal, read_tree
from escala.data.prepared_images import DTYPES, FORMAT, header_bytes
from escala.store.files import TEMPORARY, disk_errors, names_in, sync_folder
from escala.store.lock import hold
from escala.terms.errors import EscalaError

_REVISION = 1
"""Raised when a change here or in the decoding changes a byte of a chunk."""
_CHUNK_FILES = 64
_CHUNK_BYTES = 16 * 1024 * 1024
_AT_ONCE = 256
_HEADER_BYTES = 65536

Progress = Callable[[int, int], None]
"""Is told how many of how many images are done."""


@dataclass(frozen=True)
class _Decoded:
    """All chunks of a set. `place` maps a file's path to its chunk and the row within it."""

    rows: tuple[Inputs, ...]
    place: dict[str, tuple[int, int]]
    bad: dict[str, EscalaError]
    digest: str


def prepare_images(
    folder: Path,
    out: Path,
    *,
    size: tuple[int, int],
    grey: bool,
    dtype: str,
    progress: Progress,
    shares: Shares = SHARES,
    seed: int = 0,
    on_bad: str = "fail",
    allow_empty: bool = False,
    workers: int | None = None,
) -> None:
    """Write the images below `folder`, brought to `size` (width, height), into the file `out`.

    `dtype` uint8, or float16 or float32 from 0 to 1. A folder that is not in parts is split by `shares`, each class
    evenly. `on_bad` "skip" leaves damaged files out, at most one in a hundred. `workers`: processes; None: one for
    each core that this process may use. Memory does not grow with the number of images.

    Raises EscalaError DATA-PATH, DATA-CLASS, DATA-IMG, DATA-HUGE, DATA-CHANGED; CFG-VALUE, CFG-RANGE for settings;
    ENV-DISK, ENV-LOCK where another process prepares the same, ENV-WORKER where a process ended.
    """
    _check_choice("--dtype", dtype, tuple(DTYPES))
    _check_choice("--on-bad", on_bad, ("fail", "skip"))
    if workers is not None and workers < 1:
        raise EscalaError("CFG-VALUE", "--workers", f"{workers} is no number of processes", expected="1 or more")
    folder, out = folder.expanduser().absolute(), out.expanduser().absolute()
    tree = read_tree(folder, allow_empty=allow_empty).checked()
    files = [file for files in tree.parts.values() for file in files]
    # What the split refuses is said before an hour of decoding.
    deal(tree, (), shares, seed)
    key = _key(tree, files, size, grey)
    work = out.parent / f".{out.name}.work"
    with disk_errors(out):
        if out.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        names_in(out.parent)
    workers = workers or _usable_cores()
    with hold(work):
        jobs = _jobs(tree, files, work / key, size, grey)
        _check_room(out, jobs, dtype)
        decoded = _decode(tree, jobs, workers, on_bad == "skip", progress)
        if _key(tree, files, size, grey) != key:
            raise EscalaError(
                "DATA-CHANGED",
                str(folder),
                "its files changed while they were read",
                next_step="give the same command again once nothing writes there",
            )
        dealt, notes = deal(tree, decoded.bad, shares, seed)
        metadata = {
            "format": FORMAT,
            "class_names": json.dumps(tree.class_names),
            "skipped": json.dumps(sorted(decoded.bad)),
            "notes": json.dumps([*tree.notes, *notes]),
            "seed": str(seed),
            "shares": "as the folders lie" if tree.divided else "/".join(f"{100 * share:g}" for share in shares),
            "size": f"{size[0]}x{size[1]}",
            "source_digest": decoded.digest,
        }
        _write(out, dealt, decoded, jobs[0].row, dtype, metadata, workers)
        shutil.rmtree(work / key, ignore_errors=True)
    # The chunks of other settings stay: somebody may go on with them.
    with suppress(OSError):
        work.rmdir()


def _check_choice(option: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise EscalaError("CFG-VALUE", option, f"{value!r} is not known", expected=f"one of {', '.join(choices)}")


def _usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _key(tree: Tree, files: Sequence[ImageFile], size: tuple[int, int], grey: bool) -> str:
    """Names a work folder: another file, size, time or setting gives another name."""
    seen = hashlib.sha256(json.dumps([_REVISION, str(tree.folder), size, grey]).encode())
    for file in files:
        path = f"{tree.folder}/{file.path}"
        try:
            status = _status(path)
        except OSError:
            # Only now, since a guard around each file would take as long as the look itself.
            with disk_errors(Path(path), doing="read"):
                status = _status(path)
        seen.update(f"{file.path!r} {file.label} {status.st_size} {status.st_mtime_ns}\n".encode())
    return seen.hexdigest()[:20]


def _status(path: str) -> os.stat_result:
    try:
        return os.stat(path)
    except FileNotFoundError:
        # A link to a missing file has no other times than its own; to read it then says so.
        return os.lstat(path)


def _jobs(tree: Tree, files: Sequence[ImageFile], work: Path, size: tuple[int, int], grey: bool) -> list[Job]:
    at_once = max(1, min(_CHUNK_FILES, _CHUNK_BYTES // (size[0] * size[1] * (1 if grey else 3))))
    with disk_errors(work):
        names_in(work)
    named = [(file.path, tree.class_names[file.label]) for file in files]
    return [
        Job(tree.folder, tuple(named[first : first + at_once]), work / f"{first:09}", size, grey)
        for first in range(0, len(named), at_once)
    ]


def _check_room(out: Path, jobs: Sequence[Job], dtype: str) -> None:
    rows = sum(len(job.files) for job in jobs)
    needed = rows * (int(np.prod(jobs[0].row)) * np.dtype(dtype).itemsize + 8) + _HEADER_BYTES
    still = sum(len(job.files) for job in jobs if not job.out.exists())
    needed += still * int(np.prod(jobs[0].row))
    with disk_errors(out, needed):
        disk = os.statvfs(out.parent)
        if disk.f_bavail * disk.f_frsize < needed:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _decode(tree: Tree, jobs: Sequence[Job], workers: int, skip: bool, progress: Progress) -> _Decoded:
    """Make the chunks that are not there yet. Raises the first image's fault, unless such files are skipped."""
    total, done = sum(len(job.files) for job in jobs), 0
    rows, place, bad = list[Inputs](), dict[str, tuple[int, int]](), dict[str, EscalaError]()
    seen = hashlib.sha256()
    progress(0, total)
    for number, (job, chunk) in enumerate(_chunks(jobs, workers)):
        bad |= chunk.bad
        if chunk.bad and not skip:
            raise next(iter(chunk.bad.values()))
        if len(bad) > MOST_SKIPPED * total:
            check_skipped(tree.folder, bad, total)
        good = (path for path, _ in job.files if path not in chunk.bad)
        place |= {path: (number, row) for row, path in enumerate(good)}
        rows.append(chunk_rows(job, chunk))
        for (path, _), digest in zip(job.files, chunk.digests, strict=True):
            seen.update(f"{path} {digest}\n".encode("utf-8", "surrogateescape"))
        done += len(job.files)
        progress(done, total)
    return _Decoded(tuple(rows), place, bad, seen.hexdigest())


def _chunks(jobs: Sequence[Job], workers: int) -> Iterator[tuple[Job, Chunk]]:
    """Each job with its finished chunk, in order."""
    missing = [job for job in jobs if read_chunk(job) is None]
    workers = min(workers, len(missing))
    if workers <= 1:
        for job in jobs:
            yield job, read_chunk(job) or _finished(job, make_chunk(job))
        return
    # Spawned: a forked one would hold a copy of the parent's threads and locks.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, begin_worker)
    try:
        waiting: deque[tuple[Job, Future[dict[str, str] | None] | None]] = deque()
        ahead, unfinished = 0, {job.out for job in missing}
        for job in jobs:
            waiting.append((job, pool.submit(make_chunk, job) if job.out in unfinished else None))
            ahead += job.out in unfinished
            while waiting and (ahead > 4 * workers or waiting[0][1] is None):
                first, future = waiting.popleft()
                ahead -= future is not None
                yield first, _finished(first, future.result() if future else None)
        while waiting:
            first, future = waiting.popleft()
            yield first, _finished(first, future.result() if future else None)
    except BrokenProcessPool as error:
        raise EscalaError(
            "ENV-WORKER",
            str(jobs[0].folder),
            "a process that decodes images was ended from outside or by a decoder",
            next_step="see whether memory ran out; the same command goes on, with fewer --workers it needs less",
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _finished(job: Job, fatal: Mapping[str, str] | None) -> Chunk:
    if fatal is not None:
        raise EscalaError.from_dict(dict(fatal))
    chunk = read_chunk(job, verify=False)
    if chunk is None:
        raise EscalaError(
            "ENV-DISK",
            str(job.out),
            "what was just written does not read back",
            next_step="check the disk or the network drive, then give the same command again",
        )
    return chunk


def _write(
    out: Path,
    dealt: Mapping[Part, Sequence[ImageFile]],
    decoded: _Decoded,
    row: tuple[int, ...],
    dtype: str,
    metadata: Mapping[str, str],
    workers: int,
) -> None:
    """Put the result in its place: the old file or the new one is there at every moment, never a part."""
    parts = {part: files for part, files in dealt.items() if files}
    tensors: dict[str, tuple[str, tuple[int, ...]]] = {}
    for part, files in parts.items():
        tensors[f"{part}.targets"] = ("int64", (len(files),))
    for part, files in parts.items():
        tensors[f"{part}.inputs"] = (dtype, (len(files), *row))
    temporary = out.parent / f"{TEMPORARY}{secrets.token_hex(8)}"
    with disk_errors(out):
        try:
            with temporary.open("xb") as file:
                file.write(header_bytes(tensors, metadata))
                for files in parts.values():
                    file.write(np.array([one.label for one in files], "<i8").tobytes())
                file.flush()
                begin = file.tell()
                for files in parts.values():
                    begin = _write_rows(file.fileno(), begin, files, decoded, dtype, workers)
                os.fsync(file.fileno())
            os.replace(temporary, out)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        sync_folder(out.parent)


def _write_rows(
    descriptor: int, begin: int, files: Sequence[ImageFile], decoded: _Decoded, dtype: str, workers: int
) -> int:
    """Write a part's rows from byte `begin` on, by a thread for each core: alone it would take a tenth of all time.

    Returns the byte behind them.
    """
    pixels = max(1, decoded.rows[0].size // max(1, len(decoded.rows[0])))
    at_once = max(1, min(_AT_ONCE, _CHUNK_BYTES // pixels))
    row_bytes = pixels * np.dtype(dtype).itemsize
    together = 1 if pixels % 2 else 2
    table = None if dtype == "uint8" else _floats(dtype, together)

    def write(first: int) -> None:
        places = [decoded.place[one.path] for one in files[first : first + at_once]]
        rows = [decoded.rows[chunk][row].reshape(-1) for chunk, row in places]
        if table is None:
            block = np.stack(rows)
        else:
            block = np.empty((len(rows), pixels // together), table.dtype)
            # One by one: what numpy makes of a row's bytes to look them up stays in the core's cache.
            for row, made in zip(rows, block, strict=True):
                table.take(row.view(f"<u{together}"), out=made, mode="clip")
        data, place = block.data.cast("B"), begin + first * row_bytes
        while data:
            written = os.pwrite(descriptor, data, place)
            _begin_to_store(descriptor, place, written)
            data, place = data[written:], place + written

    with ThreadPoolExecutor(workers, thread_name_prefix="images") as pool:
        for _ in pool.map(write, range(0, len(files), at_once)):
            pass
    return begin + len(files) * row_bytes


def _begin_to_store(descriptor: int, begin: int, size: int) -> None:
    """Let the disk work while the next rows are made, so that little is left to wait for at the end."""
    if hasattr(os, "posix_fadvise"):
        # Linux begins to write what is called no longer needed, and drops only what the disk already has.
        with suppress(OSError):
            os.posix_fadvise(descriptor, begin, size, os.POSIX_FADV_DONTNEED)


def _floats(dtype: str, together: int) -> NDArray[Any]:
    """The floats from 0 to 1 of each byte, or of each two, which halves the time: as their bytes in the file."""
    one = (np.arange(256) / 255).astype(np.dtype(dtype).newbyteorder("<"))
    found = one if together == 1 else np.stack([np.tile(one, 256), np.repeat(one, 256)], axis=1)
    return found.view(f"u{together * one.itemsize}").reshape(-1)
