"""Training through torch.compile: the same numbers, one graph a shape, and a reason where it cannot be done."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch._dynamo
from torch import Tensor, nn
from torch._inductor import config

from escala.execution.compiled import How, breaks, compile_failure, compiled, compiled_call, end_tuning, graphs
from escala.run.failure import failure_of
from escala.run.group import leave, meet
from escala.strategies import strategy
from escala.strategies.learner import Learner
from escala.terms.errors import Unfit
from escala.terms.experiment import ExecutionSpec, TrainSpec
from escala.terms.trial import Seat, StrategyUse
from escala.workloads import workload

BATCH = 12


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    """Graphs and their counts belong to the process, which in a campaign is one trial's alone."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield
    torch._dynamo.reset()
    end_tuning()


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs are followed, but not translated into code, which takes seconds."""
    real = torch.compile

    def quick(module: nn.Module, **options: object) -> object:
        assert options.pop("options") == {"fallback_random": True}
        return real(module, backend="aot_eager", **options)  # type: ignore[call-overload]

    monkeypatch.setattr(torch, "compile", quick)


def learner(execution: ExecutionSpec, network: str = "normed:rows", dropout: float = 0.0) -> Learner:
    torch.manual_seed(0)
    work = workload(network, {"dropout": dropout})
    return strategy(StrategyUse("single", 1, "cpu")).build(
        work,
        work.model(),
        Seat(0, 0, ("cpu",), (0, BATCH), 1),
        TrainSpec(batch=BATCH, lr=0.1),
        execution,
    )


def losses(made: Learner, sizes: tuple[int, ...]) -> list[float]:
    drawn = torch.Generator().manual_seed(1)
    torch.manual_seed(2)
    kind = next(made.core.parameters()).dtype
    return [
        made.step(
            torch.rand(rows, 1, 28, 28, generator=drawn, dtype=kind), torch.arange(rows) % 10, rows, rows
        ).item()
        for rows in sizes
    ]


SIZES = (BATCH, 6, BATCH, 6)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(
    ("execution", "dropout"),
    [
        (ExecutionSpec("fp64"), 0.3),
        (ExecutionSpec("fp64", random="row"), 0.3),
        (ExecutionSpec("fp64", batchnorm="ghost:4", microbatch=4), 0.3),
        (ExecutionSpec("fp64", microbatch=4), 0.0),
    ],
)
def test_losses_are_those_of_the_network_as_it_is(execution: ExecutionSpec, dropout: float) -> None:
    plain = losses(learner(execution, dropout=dropout), SIZES)
    made = learner(ExecutionSpec(**{**_fields(execution), "compile": True}), dropout=dropout)
    assert losses(made, SIZES) == pytest.approx(plain, rel=1e-9)
    told = bool(dropout) and execution.by_row
    assert (graphs() > 0, breaks() > 0) == (not told, told)


@pytest.mark.usefixtures("eager")
def test_each_shape_has_a_graph_and_then_no_more_are_made() -> None:
    made = learner(ExecutionSpec(compile=True))
    losses(made, (BATCH, 6))
    assert (graphs(), breaks()) == (2, 0)
    losses(made, SIZES)
    assert graphs() == 2


@pytest.mark.usefixtures("eager")
def test_layers_that_are_told_of_each_pass_are_not_compiled_anew_for_each() -> None:
    made = learner(ExecutionSpec(compile=True, batchnorm="ghost:4"), dropout=0.3)
    losses(made, (BATCH,) * 2)
    before = graphs()
    losses(made, (BATCH,) * 6)
    assert graphs() == before
    assert breaks() > 0


@pytest.mark.usefixtures("eager")
def test_judging_and_states_know_nothing_of_it() -> None:
    made = learner(ExecutionSpec(compile=True))
    losses(made, (BATCH,))
    before = graphs()
    plain = learner(ExecutionSpec())
    assert list(made.state()["model"]) == list(plain.state()["model"])
    plain.load(made.state())
    rows = torch.rand(7, 1, 28, 28)
    assert torch.equal(made.predict(rows), plain.predict(rows))
    assert graphs() == before
    losses(made, (BATCH,))
    assert graphs() == before, "training after judging is not compiled again"


def test_what_is_not_wanted_is_not_touched() -> None:
    model = nn.Linear(2, 2)
    assert compiled(model, False, workload("mlp", {})) is model
    assert compiled_call(abs, False, workload("mlp", {})) is abs


@pytest.mark.parametrize(("wanted", "tuning"), [(True, False), ("tuned", True)])
def test_the_network_and_its_loss_are_compiled_alike(
    monkeypatch: pytest.MonkeyPatch, wanted: How, *, tuning: bool
) -> None:
    asked = list[object]()

    def noting(what: object, **options: object) -> object:
        asked.append((options["options"], config.coordinate_descent_tuning))
        return what

    monkeypatch.setattr(torch, "compile", noting)
    learner(ExecutionSpec(compile=wanted)).compile_around()
    assert asked == [({"fallback_random": True}, tuning)] * 2
    end_tuning()
    assert config.coordinate_descent_tuning is False


class Sound(nn.Module):
    """Runs as it is."""

    def forward(self, rows: Tensor) -> Tensor:
        return rows * 2


def test_a_network_that_cannot_be_compiled_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(graph: object, inputs: object) -> object:
        raise ValueError("no such kernel")

    module = torch.compile(Sound(), backend=broken)  # type: ignore[arg-type]
    with pytest.raises(torch._dynamo.exc.TorchDynamoException) as raised:
        module(torch.ones(2))
    failure = failure_of(raised.value, ("cpu",))
    assert failure.outcome == "unfit"
    assert failure.reason.startswith("torch.compile cannot compile this network")
    assert failure.reason.endswith("raised: ValueError: no such kernel")


def test_the_line_of_the_network_is_named_where_torch_knows_it() -> None:
    error = torch._dynamo.exc.InternalTorchDynamoError("cannot\n  go on\nSet TORCHDYNAMO_VERBOSE=1\n")
    error.real_stack = traceback.StackSummary.from_list(
        [("/a/network.py", 7, "forward", ""), ("/b/site-packages/torch/nn/x.py", 9, "forward", "")]
    )
    assert compile_failure(error) == "torch.compile cannot compile this network at network.py:7: cannot go on"
    error = torch._dynamo.exc.InternalTorchDynamoError('no lowering\n  stack {\n  File "/a/own.py", line 16, in f')
    assert (compile_failure(error) or "").startswith("torch.compile cannot compile this network at own.py:16: no")


def test_other_errors_are_no_failures_to_compile() -> None:
    assert compile_failure(ValueError("x")) is None
    assert failure_of(ValueError("x"), ("cpu",)).outcome == "failed"
    assert failure_of(Unfit("no such kernel"), ("cpu",)).outcome == "unfit"


def _fields(execution: ExecutionSpec) -> dict[str, object]:
    return {name: getattr(execution, name) for name in ExecutionSpec.__struct_fields__}


def test_inside_ddp_a_network_that_is_a_container_is_compiled_too(
    tmp_path: Path, eager: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    use = StrategyUse("ddp", 1, "cpu")
    seat = Seat(0, 0, ("cpu",), (0, BATCH), 1)
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "lo")
    meet([seat], 0, tmp_path, 60.0, needs_group=True)
    try:
        torch.manual_seed(0)
        work = workload("mlp", {"dropout": 0.0})
        model = work.model()
        assert type(model) is nn.Sequential
        made = strategy(use).build(work, model, seat, TrainSpec(batch=BATCH), ExecutionSpec(compile=True))
        made.step(torch.rand(BATCH, 1, 28, 28), torch.zeros(BATCH, dtype=torch.int64), BATCH, BATCH)
        assert graphs() > 0
        # Names in a checkpoint are the network's own.
        assert set(made.state()["model"]) == set(work.model().state_dict())
        del made
    finally:
        leave()


@pytest.mark.parametrize(("release", "older"), [("2.11.0+cu130", True), ("2.13.0+cpu", False), ("2.14.0a0", False)])
def test_what_tuning_found_is_not_found_anew_in_each_process(
    release: str, monkeypatch: pytest.MonkeyPatch, *, older: bool
) -> None:
    given = dict[str, object]()

    def compile_(what: object, *, dynamic: object, options: dict[str, object]) -> object:
        del dynamic
        given.update(options)
        return what

    monkeypatch.setattr(torch, "__version__", torch.torch_version.TorchVersion(release))
    monkeypatch.setattr(torch, "compile", compile_)
    compiled(nn.Linear(2, 2), True, workload("mlp", {}))
    assert "use_static_cuda_launcher" not in given
    compiled(nn.Linear(2, 2), "tuned", workload("mlp", {}))
    assert given.get("use_static_cuda_launcher", True) is not older


def test_the_keys_of_tuning_are_the_compilers() -> None:
    assert {"coordinate_descent_tuning", "use_static_cuda_launcher", "fallback_random"} <= set(
        config.get_config_copy()
    )
