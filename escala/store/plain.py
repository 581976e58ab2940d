"""Structures as plain data that any JSON reader can read and that read back as they were."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import msgspec

from escala.store.scrub import HIDDEN, is_secret, scrub_urls


def to_plain(value: msgspec.Struct) -> dict[str, Any]:
    """`value` as dictionaries, lists, text and numbers, without passwords.

    JSON has no number for a loss that is no longer finite: such floats become the texts "NaN", "Infinity" and
    "-Infinity", which a lax decoder of a float field turns back. Bytes of file names that are no text are shown
    as escapes.
    """
    plain: dict[str, Any] = _plain(msgspec.to_builtins(value))
    return plain


def not_finite(plain: Any, key: str) -> str | None:
    """Dotted key of the first NaN or infinity in `plain`, starting from `key`; None: there is none."""
    items: Iterable[tuple[str, Any]] = ()
    if isinstance(plain, float):
        return None if math.isfinite(plain) else key
    if isinstance(plain, dict):
        items = ((f"{key}.{name}" if key else name, item) for name, item in plain.items())
    elif isinstance(plain, (list, tuple)):
        items = ((f"{key}[{place}]", item) for place, item in enumerate(plain))
    return next((found for name, item in items if (found := not_finite(item, name))), None)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else _name_of(value)
    if isinstance(value, str):
        return scrub_urls(value.encode("utf-8", "backslashreplace").decode())
    if isinstance(value, dict):
        return {_plain(key): _item(key, item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def _item(key: str, value: Any) -> Any:
    # Numbers and switches stay: `token = 4` is a setting, not a secret.
    return HIDDEN if isinstance(value, str) and value and is_secret(key) else _plain(value)


def _name_of(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    return "Infinity" if number > 0 else "-Infinity"
