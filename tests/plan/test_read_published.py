"""Published figures belong to rows of their own experiment."""

from __future__ import annotations

import pytest

from escala.plan.read import parse
from escala.terms.errors import EscalaError
from escala.terms.published import PublishedSpec, SourceSpec

TEXT = """
[workload]
name = "mlp"
[train]
epochs = 1
[[strategy]]
name = "single"
[[strategy]]
name = "ddp"
ways = 2
[[case]]
name = "small"
set = { train.lr = 0.1 }
[sweep]
"train.batch" = [32, 64]
[source]
work = "a paper"
[[published]]
row = "ddp x2"
case = "small"
point = { train.batch = 64 }
figure = "speed-up"
against = "single"
value = 2
unit = "x"
[quick]
measure.repeats = 1
"""


def test_a_figure_is_read_with_all_its_keys() -> None:
    experiment = parse(TEXT, "x.toml").experiment
    assert experiment.source == SourceSpec("a paper")
    assert experiment.published == (
        PublishedSpec("ddp x2", "speed-up", 2.0, "x", "single", "small", {"train.batch": 64}),
    )


@pytest.mark.parametrize(
    ("old", "new", "code", "line", "words"),
    [
        ('row = "ddp x2"', 'row = "ddp x3"', "CFG-VALUE", 19, "did you mean ddp x2?"),
        ('case = "small"', 'case = "smal"', "CFG-VALUE", 20, "did you mean small?"),
        ("{ train.batch = 64 }", '{ "train.bath" = 64 }', "CFG-KEY", 21, "did you mean train.batch?"),
        ("{ train.batch = 64 }", "{ train.batch = 65 }", "CFG-VALUE", 21, "one of 32, 64"),
        ('figure = "speed-up"', 'figure = "speedup"', "CFG-VALUE", 22, "did you mean speed-up?"),
        ('against = "single"', 'against = "singel"', "CFG-VALUE", 23, "did you mean single?"),
        ('figure = "speed-up"', 'figure = "total s"', "CFG-VALUE", 25, "one of s, min, h"),
        ("value = 2", "value = true", "CFG-TYPE", 24, "a number"),
        ("value = 2\n", "", "CFG-MISSING", 18, "value is missing"),
        ("value = 2", "valeu = 2\nvalue = 2", "CFG-KEY", 24, "did you mean value?"),
        ('unit = "x"', 'unit = "%"', "CFG-VALUE", 25, "is not a choice"),
        ('[source]\nwork = "a paper"\n', "", "CFG-MISSING", 16, "source is missing"),
        ('work = "a paper"', "", "CFG-MISSING", 16, "source.work is missing"),
    ],
)
def test_what_belongs_nowhere_is_refused_at_its_line(old: str, new: str, code: str, line: int, words: str) -> None:
    assert old in TEXT
    with pytest.raises(EscalaError) as caught:
        parse(TEXT.replace(old, new, 1), "x.toml")
    assert (caught.value.code, caught.value.where) == (code, f"x.toml:{line}")
    assert words in str(caught.value)


def test_only_a_ratio_is_against_a_row() -> None:
    text = TEXT.replace('figure = "speed-up"', 'figure = "total s"').replace('unit = "x"', 'unit = "s"')
    with pytest.raises(EscalaError, match="only speed-ups, efficiencies and EDP"):
        parse(text, "x.toml")


def test_a_figure_published_twice_is_refused() -> None:
    entry = TEXT[TEXT.index("[[published]]") : TEXT.index("[quick]")]
    with pytest.raises(EscalaError, match="published twice") as caught:
        parse(TEXT + entry, "x.toml")
    assert caught.value.code == "CFG-DUP"


def test_the_quick_form_and_overrides_may_leave_rows_out() -> None:
    assert len(parse(TEXT, "x.toml", ["strategy.1.ways=3"]).experiment.published) == 1
    assert len(parse(TEXT + "strategy.1.ways = 3\n", "x.toml", quick=True).experiment.published) == 1
