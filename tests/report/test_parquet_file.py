"""The report as a Parquet file."""

from __future__ import annotations

import io
import sys
from math import inf
from typing import Any

import pytest
import recorded as made
from shown import shown

from escala.analyse.annex import NOTHING, Annex
from escala.analyse.epochs import by_epoch
from escala.report.parquet_file import parquet_bytes
from escala.terms.errors import EscalaError


def table(records: list[Any], *, epochs: bool = False) -> Any:
    parquet = pytest.importorskip("pyarrow.parquet")
    summaries, _ = shown(records)
    annex = Annex(None, by_epoch(records, summaries)) if epochs else NOTHING
    return parquet.read_table(io.BytesIO(parquet_bytes(summaries, annex)))


def test_rows_and_figures_come_back_typed() -> None:
    found = table(made.clean_campaign())
    rows = found.to_pylist()
    assert [row["label"] for row in rows] == ["single", "ddp x1", "ddp x2"]
    assert rows[0]["train_s"] == 2.0
    assert rows[2]["is_baseline"] is False
    types = {field.name: str(field.type) for field in found.schema}
    assert (types["ways"], types["train_s_low"], types["label"]) == ("int64", "double", "string")
    assert rows[0]["to_score_s"] is None


def test_swept_keys_are_columns_and_never_is_infinite() -> None:
    assert table(made.swept_campaign())["point.train.batch"].to_pylist() == [64, 64, 256, 256]
    assert table(made.aimed("single", [None, None, None]))["to_score_s"].to_pylist() == [inf]


def test_epochs_have_a_row_each() -> None:
    assert table(made.clean_campaign(), epochs=True)["number"].to_pylist() == [1, 2] * 3


def test_without_pyarrow_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "pyarrow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(EscalaError, match=r"escala\[parquet\]") as caught:
        parquet_bytes(shown(made.clean_campaign())[0], NOTHING)
    assert caught.value.code == "ENV-EXTRA"
