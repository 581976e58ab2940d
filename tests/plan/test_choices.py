from __future__ import annotations

import pytest
from msgspec.structs import replace

from escala.plan import choices
from escala.plan.choices import choice_unfit
from escala.plan.preflight import Facts
from escala.plan.read import parse
from escala.terms.errors import EscalaError
from escala.terms.experiment import ExecutionSpec, WorkloadSpec
from escala.terms.host import Device, Host
from escala.terms.record import DataUse
from escala.terms.trial import Seat

USE = DataUse(name="d", origin="real", where="w", digest="x", rows={"train": 700, "test": 300}, classes=10)
HOST = Host(cpu="c", cores=2, memory_bytes=1, system="s", devices=(Device("cuda", 0, "g", 10_000),))


def facts(row_bytes: int = 1, *, images: bool = True) -> Facts:
    return Facts(WorkloadSpec("mlp"), "d", USE, 1, 1, (), images=images, row_bytes=row_bytes)


def seats(*devices: str) -> tuple[Seat, ...]:
    return tuple(Seat(rank, 0, (device,), (rank, rank + 1), 1) for rank, device in enumerate(devices))


def reason(execution: ExecutionSpec, kind: str = "cpu", of: Facts | None = None, on: tuple[Seat, ...] = ()) -> str:
    return choice_unfit(execution, kind, on or seats(kind), of or facts(), HOST) or ""


def test_what_is_left_alone_fits() -> None:
    assert reason(ExecutionSpec()) == ""
    assert reason(ExecutionSpec(feed="host", optimizer_kernel="fused", bucket_mb=1.0)) == ""


def test_channels_last_needs_images() -> None:
    wanted = ExecutionSpec(memory_format="channels_last")
    assert reason(wanted) == ""
    assert "mlp on d has no images" in reason(wanted, of=facts(images=False))


def test_packed_dropout_is_for_processors_and_for_layers_that_it_can_stand_in_for() -> None:
    wanted = ExecutionSpec(dropout_kernel="packed")
    dropping = replace(facts(), drops=True, packs=True)
    assert reason(wanted, of=dropping) == ""
    assert "cuda draws all its numbers at once" in reason(wanted, "cuda", dropping)
    assert "mlp has no nn.Dropout" in reason(wanted, of=replace(facts(), drops=True))
    assert "numbers of its own" in reason(replace(wanted, random="row"), of=dropping)
    assert "numbers of its own" in reason(replace(wanted, batchnorm="ghost:4"), of=dropping)


def test_resident_data_must_leave_room_on_the_device() -> None:
    wanted = ExecutionSpec(feed="resident")
    assert reason(wanted, "cuda", facts(8), seats("cuda:0")) == ""
    told = reason(wanted, "cuda", facts(9), seats("cuda:0"))
    assert "9,000 bytes of data on cuda:0, which has 10,000 bytes and may give 8,000" in told
    told = reason(wanted, "cuda", facts(5), seats("cuda:0", "cuda:0"))
    assert "2 seats x 5,000 bytes" in told
    assert reason(wanted, "cpu", facts(10**9)) == ""
    assert choice_unfit(wanted, "cuda", (), facts(9), HOST) is None


def test_compiling_needs_its_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = ExecutionSpec(compile=True)
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(choices.sys, "platform", "linux")
    there = {"g++", "ccache"}
    monkeypatch.setattr(choices.shutil, "which", lambda name: name if name in there else None)
    monkeypatch.setattr(choices.Path, "exists", lambda _: "g++" in there)
    monkeypatch.setattr(choices, "find_spec", lambda _: None)
    assert reason(wanted) == ""
    assert "compile = tuned measures kernels of GPUs" in reason(ExecutionSpec(compile="tuned"))
    assert "needs the package triton" in reason(wanted, "cuda")
    assert "for mps is not finished" in reason(wanted, "mps")
    monkeypatch.setenv("CXX", "ccache clang++")
    assert reason(wanted) == ""
    monkeypatch.setenv("CXX", "none-such")
    assert "there is no none-such" in reason(wanted)
    monkeypatch.delenv("CXX")
    there.remove("g++")
    assert "there is no g++" in reason(wanted)
    there.add("clang++")
    monkeypatch.setattr(choices.sys, "platform", "darwin")
    assert "Python.h" in reason(wanted)


def test_captured_steps_leave_nothing_to_the_host() -> None:
    wanted = ExecutionSpec(capture=True)
    assert "capture needs a CUDA device, whose graphs it records; this is cpu" in reason(wanted)
    assert reason(wanted, "cuda", on=seats("cuda:0", "cuda:1")) == ""
    assert "share" in reason(wanted, "cuda", on=seats("cuda:0", "cuda:0"))
    refused = {
        "loss scaling": ExecutionSpec("fp16", capture=2),
        "ghost:8 keeps account": ExecutionSpec(batchnorm="ghost:8", capture=2),
        "unused = detect": ExecutionSpec(unused="detect", capture=2),
        "powersgd": ExecutionSpec(compression="powersgd", capture=2),
    }
    for told, execution in refused.items():
        assert told in reason(execution, "cuda", on=seats("cuda:0"))
    assert reason(ExecutionSpec("bf16", batchnorm="sync", compression="bf16", capture=2), "cuda") == ""


@pytest.mark.parametrize(
    ("execution", "steps"),
    [
        (ExecutionSpec(), 0),
        (ExecutionSpec(capture=True), 1),
        (ExecutionSpec(capture=True, feed="resident"), None),
        (ExecutionSpec(capture=1, feed="resident"), 1),
        (ExecutionSpec(capture=5), 5),
    ],
)
def test_as_many_steps_are_captured_as_nothing_keeps_apart(execution: ExecutionSpec, steps: int | None) -> None:
    assert execution.unroll == steps


def test_a_capture_of_one_step_and_one_of_any_number_are_two_rows() -> None:
    rows = [
        f"[[strategy]]\nname = 'single'\nlabel = '{n}'\nexecution = {{capture = {n}}}" for n in ("true", "1", "4")
    ]
    base = "[workload]\nname = 'mlp'\n[train]\nepochs = 1\n"
    found = parse(base + "\n".join(rows), "e.toml").experiment
    assert [strategy.execution["capture"] for strategy in found.strategy] == [True, 1, 4]
    with pytest.raises(EscalaError, match="CFG-DUP"):
        parse(base + "\n".join([rows[1], rows[1].replace("label = '1'", "label = 'x'")]), "e.toml")


TEXT = """
[workload]
name = "mlp"
[train]
epochs = 1
[[strategy]]
name = "single"
[execution]
"""


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("workers = 2", r"error\[CFG-VALUE\].*workers = 2 with execution.feed = memory"),
        ('workers = 2\nfeed = "resident"', "which has no workers"),
        ('workers = -1\nfeed = "host"', "CFG-RANGE"),
        ('static_graph = true\nunused = "detect"', r"CFG-VALUE.*looks again in every step"),
        ('memory_format = "nhwc"', "memory_format"),
        ("compile = 1", "compile"),
        ('compile = "fast"', "compile"),
        ("capture = 0", "capture"),
        ("capture = 65", "capture"),
        ('capture = "yes"', "capture"),
        ('optimizer_kernel = "fast"', "optimizer_kernel"),
        ("bucket_mb = 0", "bucket_mb"),
        ('compression = "fp8"', "compression"),
    ],
)
def test_nonsense_is_refused_before_anything_starts(line: str, told: str) -> None:
    with pytest.raises(EscalaError, match=told):
        parse(TEXT + line, "e.toml")


@pytest.mark.parametrize(("word", "compile"), [("true", True), ('"tuned"', "tuned")])
def test_every_choice_can_be_read(word: str, compile: bool | str) -> None:
    lines = f"""
memory_format = "channels_last"
compile = {word}
optimizer_kernel = "foreach"
feed = "host"
workers = 3
bucket_mb = 12.5
compression = "powersgd"
static_graph = true
capture = 4
"""
    execution = parse(TEXT + lines, "e.toml").experiment.execution
    assert (execution.workers, execution.bucket_mb, execution.compile, execution.capture) == (3, 12.5, compile, 4)
