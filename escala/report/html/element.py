"""HTML from parts: what is no `Html` is text, and is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable

from msgspec import Struct

_VOID = frozenset({"meta", "br", "hr"})


class Html(Struct, frozen=True):
    """Markup that is done: nothing in it is escaped again."""

    text: str


def element(tag: str, *inner: Html | str, **attributes: str | None) -> Html:
    """One element. A trailing underscore of an attribute's name is cut, others become hyphens; None leaves it out."""
    named = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{html.escape(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    if tag in _VOID:
        return Html(f"<{tag}{named}>")
    return Html(f"<{tag}{named}>{''.join(map(_inner, inner))}</{tag}>")


def joined(parts: Iterable[Html | str], between: str = "\n") -> Html:
    """Parts after each other."""
    return Html(between.join(map(_inner, parts)))


def raw(tag: str, text: str, **attributes: str | None) -> Html:
    """A `script` or `style`, in which nothing can be escaped. Raises ValueError where `text` would end it early."""
    if f"</{tag}" in text.lower() or "<!--" in text:
        raise ValueError(f"the text would end its {tag} element")
    opening = element(tag, **attributes).text.removesuffix(f"</{tag}>")
    return Html(f"{opening}{text}</{tag}>")


def name(text: str) -> Html:
    """A name, whose direction of writing touches nothing around it."""
    return element("bdi", text)


def _inner(part: Html | str) -> str:
    return part.text if isinstance(part, Html) else html.escape(part)
