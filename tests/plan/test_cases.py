from __future__ import annotations

import pytest

from escala.plan.cases import only
from escala.plan.read import Loaded, read, variations
from escala.terms.errors import EscalaError


@pytest.fixture
def six() -> Loaded:
    return read("six-pairs")


def test_without_a_name_all_cases_stay(six: Loaded) -> None:
    assert only(six, []) is six


def test_named_cases_stay_in_the_experiments_order_with_their_published_figures(six: Loaded) -> None:
    names = [case.name for case in six.experiment.case]
    kept = only(six, [names[3], names[0]])
    assert [case.name for case in kept.experiment.case] == [names[0], names[3]]
    assert {point.point["case"] for point in variations(kept.experiment)} == {names[0], names[3]}
    told = {one.case for one in six.experiment.published}
    assert {names[0], names[1]} <= told
    assert {one.case for one in kept.experiment.published} <= {None, names[0], names[3]}
    assert kept.experiment.published


def test_a_part_of_a_name_will_do_where_it_names_one(six: Loaded) -> None:
    name = six.experiment.case[0].name
    assert [case.name for case in only(six, [name.upper()]).experiment.case] == [name]


@pytest.mark.parametrize(
    ("source", "name", "words"),
    [("six-pairs", "", "part of several"), ("six-pairs", "imbd", "no case"), ("quickstart", "x", "has no cases")],
)
def test_a_name_of_no_case_or_of_several_is_refused(source: str, name: str, words: str) -> None:
    with pytest.raises(EscalaError, match=words) as caught:
        only(read(source), [name])
    assert caught.value.code == "CFG-CASE"
