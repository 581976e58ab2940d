"""Sets of the hub, as its library gives them."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from parquet_files import NAMES, TEXTS, pa

from escala.data import find, hub
from escala.data.texts import Labelled, TextSource
from escala.terms.errors import EscalaError, Exit


class FakeDataset:
    """As much of a table of the library `datasets` as is used."""

    def __init__(self, content: Any) -> None:
        self.content = content
        self.features = self
        self.arrow_schema = content.schema

    def select_columns(self, names: list[str]) -> FakeDataset:
        return FakeDataset(self.content.select(names))

    def with_format(self, name: str) -> FakeDataset:
        assert name == "arrow"
        return self

    def iter(self, at_once: int) -> Any:
        return (self.content.slice(first, at_once) for first in range(0, self.content.num_rows, at_once))


def test_a_set_of_the_hub() -> None:
    content = FakeDataset(pa.table(TEXTS).replace_schema_metadata(NAMES))
    asked = []

    def load(name: str, config: str | None) -> dict[str, FakeDataset]:
        asked.append((name, config))
        return {"train": content, "test": content, "unsupervised": content}

    found = hub.find("hub:someone/reviews:plain_text", {}, load)
    assert isinstance(found, TextSource)
    assert asked == [("someone/reviews", "plain_text")]
    assert (found.facts().name, found.facts().where) == (
        "someone/reviews:plain_text",
        "hub:someone/reviews:plain_text",
    )
    assert found.facts().class_names == ("neg", "pos")
    assert "unsupervised" in found.facts().notes[0]
    assert [row.text for row in found.documents("test") if isinstance(row, Labelled)] == TEXTS["text"]


def test_the_hub_out_of_reach_or_unknown() -> None:
    def load(name: str, config: str | None) -> dict[str, FakeDataset]:
        raise ConnectionError("no route\nand more")

    with pytest.raises(EscalaError) as caught:
        hub.find("hub:someone/reviews", {}, load)
    assert (caught.value.code, caught.value.exit) == ("ENV-NET", Exit.DEVICE)
    assert caught.value.where == "https://huggingface.co/datasets/someone/reviews"
    assert "no route" in caught.value.what
    assert "and more" not in caught.value.what
    for name in ("hub:", "hub:a/b/c", "hub:../x y", "hub:a:b:c"):
        with pytest.raises(EscalaError) as caught:
            find(name, {})
        assert caught.value.code == "CFG-VALUE"


def test_the_library_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(EscalaError) as caught:
        find("hub:someone/reviews", {})
    assert caught.value.code == "ENV-EXTRA"
