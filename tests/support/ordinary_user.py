"""File permissions mean nothing to the superuser: be somebody else for a while."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def as_ordinary_user() -> Iterator[None]:
    """Without the superuser's rights, if this process has them."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
