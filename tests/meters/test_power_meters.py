"""The table of power meters, and what an experiment may say of them."""

from __future__ import annotations

import subprocess
import sys

import pytest
import scripted

from escala.meters import METER_NAMES, POWER_METERS, power_meter
from escala.terms.errors import EscalaError, Exit, Unavailable
from escala.terms.host import Host


def test_measured_comes_before_estimated() -> None:
    assert tuple(POWER_METERS) == ("nvml", "amd", "rapl", "estimate")
    assert set(METER_NAMES) == {"memory", *POWER_METERS}
    assert all(power_meter(name) is opener for name, opener in POWER_METERS.items())


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(EscalaError) as caught:
        power_meter("nvlm")
    assert caught.value.code == "CFG-VALUE"
    assert caught.value.exit is Exit.CONFIG
    assert caught.value.next_step == "did you mean nvml?"
    assert "module:factory" in caught.value.expected


def test_a_persons_own_meter_opens_by_module_and_factory() -> None:
    bench = scripted_bench()
    assert power_meter("scripted:steady")(bench).channels == (scripted.PACKAGE,)
    with pytest.raises(Unavailable, match="no such counter here"):
        power_meter("scripted:absent")(bench)


@pytest.mark.parametrize("name", ["no_such_module:f", "scripted:no_such_factory", "os:getcwd", "builtins:repr"])
def test_what_is_no_meter_is_an_error_of_ours(name: str) -> None:
    with pytest.raises(EscalaError) as caught:
        power_meter(name)(scripted_bench())
    assert caught.value.code == "ENV-METER"
    assert name in str(caught.value)


def test_the_table_costs_nothing_to_import() -> None:
    code = "import sys, escala.meters; print(*{'torch', 'numpy', 'pynvml', 'amdsmi', 'psutil'} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == ""


def test_every_meter_opens_here_or_says_why_not() -> None:
    reasons = list[str]()
    for opener in POWER_METERS.values():
        try:
            meter = opener(scripted_bench())
        except Unavailable as error:
            reasons.append(str(error))
            continue
        assert len(meter.read()) == len(meter.channels)
        meter.close()
    assert all(reasons)


def scripted_bench() -> scripted.Bench:
    return scripted.Bench(Host("a processor", 2, 1, "Linux"))
