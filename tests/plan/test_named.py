from __future__ import annotations

import pytest

from escala.plan.read import parse, resolved
from escala.terms.errors import EscalaError
from escala.terms.experiment import ExecutionSpec

TEXT = """
execution = {whole}
workload = {{ name = "mlp" }}
train = {{ steps = 5 }}
[[strategy]]
name = "single"
execution = {own}
"""


@pytest.mark.parametrize(
    ("whole", "own", "choose"),
    [
        ('"plain"', "{}", "given"),
        ('"best"', "{}", "best"),
        ('"plain"', '"best"', "best"),
        ("{}", '{ choose = "best", precision = "bf16" }', "best"),
    ],
)
def test_executions_by_name(whole: str, own: str, choose: str) -> None:
    experiment = parse(TEXT.format(whole=whole, own=own), "e.toml").experiment
    _, execution = resolved(experiment, experiment.strategy[0])
    assert execution.choose == choose
    assert execution.precision == ("bf16" if "bf16" in own else ExecutionSpec().precision)


def test_another_name_is_refused_with_its_line() -> None:
    with pytest.raises(EscalaError, match=r"e\.toml:2") as caught:
        parse(TEXT.format(whole='"fast"', own="{}"), "e.toml")
    assert caught.value.exit == 2
