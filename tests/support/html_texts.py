"""What a page tells: its texts, what its elements are called by ear, and the data of its script."""

from __future__ import annotations

from html.parser import HTMLParser

_CALLED = ("aria-label", "title")


class Page(HTMLParser):
    """A page, read."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.told: list[str] = []
        self.data = ""
        self.language = ""
        self._in = ""
        self._id: str | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self._in, self._id = tag, named.get("id")
        self.language = named.get("lang") or self.language
        self.told += [told for name in _CALLED if (told := named.get(name))]

    def handle_endtag(self, tag: str) -> None:
        self._in = ""

    def handle_data(self, data: str) -> None:
        if self._in == "script" and self._id == "plots":
            self.data = data
        elif self._in not in ("script", "style"):
            self.told.append(data)
