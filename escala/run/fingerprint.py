"""A number that initial weights decide, by which seats find that they did not start alike."""

from __future__ import annotations

import hashlib

from torch import nn

_ROW = 1024


def fingerprint(model: nn.Module) -> int:
    """48 bits of sums and first elements, which suffice and cost little on large models."""
    parts = bytearray()
    for name, value in model.state_dict().items():
        flat = value.detach().flatten()
        # In rows: a sum in float64 of all takes many times as long, and one in float32 goes by the number of threads.
        whole = flat.numel() // _ROW * _ROW
        total = flat[:whole].view(-1, _ROW).sum(1).double().sum() + flat[whole:].double().sum()
        parts += name.encode() + repr((flat.numel(), total.item(), flat[:8].tolist())).encode()
    return short_hash(bytes(parts))


def short_hash(data: bytes) -> int:
    """48 bits, which pass unchanged through the float64 in which seats exchange numbers."""
    return int.from_bytes(hashlib.blake2b(data, digest_size=6).digest(), "big")
