from __future__ import annotations

from typing import get_args

import pytest

from escala.terms.doubts import ADVICE, Doubt
from escala.terms.errors import EscalaError, Exit


def test_every_doubt_has_advice() -> None:
    assert set(ADVICE) == set(get_args(Doubt))


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        ("CFG-KEY", Exit.CONFIG),
        ("CFG-TAG", Exit.UNSAFE),
        ("DATA-IDX", Exit.DATA),
        ("MODEL-KIND", Exit.DATA),
        ("CKPT-NONE", Exit.DATA),
        ("ENV-LOCK", Exit.DEVICE),
        ("RES-CORRUPT", Exit.UNTRUSTED),
        ("SEC-PICKLE", Exit.UNSAFE),
    ],
)
def test_the_family_of_a_code_decides_the_exit(code: str, exit_code: Exit) -> None:
    assert EscalaError(code, "here", "what").exit == exit_code


def test_an_error_is_one_line_with_place_expectation_and_way_out() -> None:
    error = EscalaError("CFG-KEY", "e.toml:3", "no such\nkey", expected="one of a, b", next_step="did you mean a?")
    assert str(error) == "escala: error[CFG-KEY] e.toml:3: no such key (one of a, b); did you mean a?"
    assert str(EscalaError.from_dict(error.to_dict())) == str(error)
