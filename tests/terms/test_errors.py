from __future__ import annotations

from escala.terms.errors import EscalaError


def test_nothing_in_a_line_steers_the_terminal() -> None:
    line = str(EscalaError("DATA-QA", "a\x1b[2Jb.json", "id \x07 and \u202e turned", next_step="x\x9by"))
    assert line == "escala: error[DATA-QA] a\\u001b[2Jb.json: id \\u0007 and \\u202e turned; x\\u009by"
