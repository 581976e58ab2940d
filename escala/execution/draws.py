"""Random numbers by counter: a function of (key, row, place) alone, so that nobody's draws depend on anybody else's.

Each row has a stream of SplitMix64 (Steele, Lea and Flood 2014, doi:10.1145/2660193.2660195; constants as in Vigna's
public-domain splitmix64.c), which can be entered at any place. Only additions, products, shifts and exclusive ors of
integers, which are the same on every kind of device.
"""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor

_GAMMA = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB
_MASK = 2**64 - 1


def key_of(*words: int | str) -> int:
    """64 bits that stand for these words."""
    told = " ".join(str(word) for word in words).encode()
    return int.from_bytes(hashlib.blake2b(told, digest_size=8).digest(), "little")


def stream(keys: Tensor, many: int) -> Tensor:
    """The first `many` outputs of SplitMix64 from each of `keys` int64 [n]: int64 [n, many], read as unsigned."""
    places = torch.arange(1, many + 1, device=keys.device)
    return _mixed(keys[:, None] + places * _signed(_GAMMA))


def at_step(key: int, step: int | Tensor) -> int | Tensor:
    """Output number `step` (from 0) of the stream from `key`: the key of what is drawn in that optimiser step.

    An int64 tensor (0-d) where `step` is one: a recorded step goes by a counter on the device and by no number that
    it was recorded with.
    """
    if isinstance(step, Tensor):
        return _mixed((step + 1) * _signed(_GAMMA) + _signed(key))
    state = (key + (step + 1) * _GAMMA) & _MASK
    for shift, factor in ((30, _FIRST), (27, _SECOND), (31, 1)):
        state = ((state ^ (state >> shift)) * factor) & _MASK
    return state


def kept(key: int | Tensor, first: int, rows: int, width: int, dropped: float, device: torch.device) -> Tensor:
    """bool [rows, width], each False with probability `dropped`, below 1, to 32 bits, for rows `first` and after it.

    What a row gets depends on `key` and its number alone, of however many rows it is one.
    """
    numbers = torch.arange(first + 1, first + rows + 1, device=device)
    keys = _mixed(numbers * _signed(_GAMMA) + (_signed(key) if isinstance(key, int) else key))
    # Each output of 64 bits serves as two draws of 32.
    pairs = -(-width // 2)
    draws = stream(keys, pairs).flatten().view(torch.int32).view(rows, 2 * pairs)
    return draws[:, :width] >= int(dropped * 2**32) - 2**31


def _mixed(state: Tensor) -> Tensor:
    state ^= _shifted(state, 30)
    state *= _signed(_FIRST)
    state ^= _shifted(state, 27)
    state *= _signed(_SECOND)
    state ^= _shifted(state, 31)
    return state


def _shifted(state: Tensor, by: int) -> Tensor:
    # Shifts of signed integers drag the sign along; torch multiplies and shifts no unsigned ones of 64 bits.
    return (state >> by).bitwise_and_((1 << (64 - by)) - 1)


def _signed(bits: int) -> int:
    return bits - 2**64 if bits >= 2**63 else bits
