"""Elements: what is no markup is text."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from escala.report.html.element import Html, element, joined, name, raw


class Reader(HTMLParser):
    """What a browser would make of it: tags with attributes, and text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@given(
    st.text(st.characters(exclude_categories=["Cs", "Cc"])), st.text(st.characters(exclude_categories=["Cs", "Cc"]))
)
def test_texts_and_attributes_come_back_as_they_were(text: str, value: str) -> None:
    reader = Reader()
    reader.feed(element("p", name(text), title=value).text)
    reader.close()
    assert reader.tags == [("p", {"title": value}), ("bdi", {})]
    assert reader.text == text


def test_names_of_attributes() -> None:
    assert element("a", "x", class_="y", aria_label="z", href=None).text == '<a class="y" aria-label="z">x</a>'
    assert element("meta", charset="utf-8").text == '<meta charset="utf-8">'
    assert joined(["<", Html("<b>")], " ").text == "&lt; <b>"


@pytest.mark.parametrize("text", ["a</script>b", "a</SCRIPT b", "<!-- a"])
def test_a_script_cannot_be_ended_by_its_text(text: str) -> None:
    with pytest.raises(ValueError, match="would end its script"):
        raw("script", text)
    assert raw("script", "1 < 2", id="x").text == '<script id="x">1 < 2</script>'
