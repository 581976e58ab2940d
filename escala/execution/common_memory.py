"""Memory that all seats of one node have in common, and that ends with them."""

from __future__ import annotations

import fcntl
import mmap
import os
import secrets
import sys

import torch
import torch.distributed as dist

from escala.terms.errors import EscalaError


def common_memory(size: int, rank: int) -> mmap.mmap:
    """`size` bytes that are zero at first and common to all seats of the process group, but for one number in front.

    They have no name in any file system and end with the last process that holds them, however it ends. Raises
    `ENV-SHM` where a seat cannot reach them.
    """
    where = torch.zeros(3, dtype=torch.int64)
    if rank == 0:
        held = os.memfd_create("escala", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(held, size)
        # Whoever has the descriptor can then not cut off what others have mapped.
        fcntl.fcntl(held, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        token = secrets.randbits(62)
        os.pwrite(held, token.to_bytes(8, sys.byteorder), 0)
        where[:] = torch.tensor([os.getpid(), held, token])
    dist.broadcast(where, 0)
    pid, number, token = where.tolist()
    if rank > 0:
        held = _opened(pid, number, size, token)
    try:
        memory = mmap.mmap(held, size)
        # All have it before rank 0 lets its descriptor go.
        dist.barrier()
    finally:
        os.close(held)
    return memory


def _opened(pid: int, number: int, size: int, token: int) -> int:
    held = None
    try:
        held = os.open(f"/proc/{pid}/fd/{number}", os.O_RDWR | os.O_CLOEXEC)
        what = os.fstat(held)
        found = int.from_bytes(os.pread(held, 8, 0), sys.byteorder)
        reason = "" if (what.st_size, what.st_uid, found) == (size, os.geteuid(), token) else "it is another's"
    except OSError as error:
        reason = error.strerror or str(error)
    if held is not None and not reason:
        return held
    if held is not None:
        os.close(held)
    raise EscalaError(
        "ENV-SHM",
        f"/proc/{pid}/fd/{number}",
        f"this seat cannot reach the memory that rank 0 shares: {reason}",
        expected="all seats under one user in one container",
        next_step="leave execution.transport out",
    )
