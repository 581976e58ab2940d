"""A number that initial weights decide, by which seats find that they did not start alike."""

from __future__ import annotations

import hashlib

import numpy as np
import torch
from torch import nn


def fingerprint(model: nn.Module) -> int:
    """48 bits of sums and first elements, which suffice and cost little on large models.

    What is added up are the bits as whole numbers: exactly, so no change is too small, whatever the format.
    """
    parts = bytearray()
    for name, value in model.state_dict().items():
        flat = value.detach().flatten()
        bits = flat.cpu().contiguous().view(torch.uint8).numpy()
        words = bits[: len(bits) // 8 * 8].view(np.uint64)
        rest = bits[len(words) * 8 :].tobytes()
        parts += name.encode() + repr((flat.numel(), int(np.add.reduce(words)), rest, flat[:8].tolist())).encode()
    return short_hash(bytes(parts))


def short_hash(data: bytes) -> int:
    """48 bits, which pass unchanged through the float64 in which seats exchange numbers."""
    return int.from_bytes(hashlib.blake2b(data, digest_size=6).digest(), "big")
