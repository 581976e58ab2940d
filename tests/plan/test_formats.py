from __future__ import annotations

from importlib.util import find_spec

from escala.plan.formats import format_unfit
from escala.terms.host import Device, Host


def host(*capabilities: str) -> Host:
    cards = tuple(
        Device("cuda", index, "Card", 1, capability=capability) for index, capability in enumerate(capabilities)
    )
    return Host(cpu="c", cores=2, memory_bytes=1, system="s", devices=cards)


def test_usual_formats_fit_everywhere() -> None:
    for precision in ("fp32", "bf16", "fp16"):
        assert format_unfit(precision, "cpu", host()) is None  # type: ignore[arg-type]
    assert format_unfit("tf32", "cuda", host("8.0")) is None


def test_what_a_device_does_not_have_is_said() -> None:
    assert "on cpu it would be fp32" in (format_unfit("tf32", "cpu", host()) or "")
    assert "does not exist on mps" in (format_unfit("fp64", "mps", host()) or "")
    assert "cpu has none" in (format_unfit("fp8", "cpu", host()) or "")
    assert "Card has 8.6" in (format_unfit("fp8", "cuda", host("9.0", "8.6")) or "")
    assert "an unknown one" in (format_unfit("fp8", "cuda", host("")) or "")
    reason = format_unfit("fp8", "cuda", host("9.0", "10.0"))
    assert reason is None if find_spec("torchao") else "torchao" in (reason or "")
