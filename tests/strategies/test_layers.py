"""A network laid over the devices of one process. What moves between real ones is for a machine that has two."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from escala.strategies import strategy
from escala.strategies.chain import Chain, spread
from escala.terms.errors import Unfit
from escala.terms.experiment import ExecutionSpec, StrategyOptions, TrainSpec
from escala.terms.host import Device, Host
from escala.terms.trial import Seat, StrategyUse
from escala.workloads import workload

FOUR = Host("c", 8, 1, "s", tuple(Device("cuda", index, "GPU", 1) for index in range(4)))
PLAIN = ExecutionSpec()
CPU = torch.device("cpu")


def seats(ways: int, execution: ExecutionSpec = PLAIN, device: str = "cuda", *, simulate: bool = False) -> Seat:
    (seat,) = strategy(StrategyUse("layers", ways, device, simulate)).seats(FOUR, 64, execution)
    return seat


def test_one_seat_has_all_devices_and_all_rows() -> None:
    assert (seats(3).devices, seats(3).rows, seats(3).tells) == (("cuda:0", "cuda:1", "cuda:2"), (0, 64), True)
    assert seats(2, device="cpu", simulate=True).devices == ("cpu", "cpu")


@pytest.mark.parametrize(
    ("use", "execution", "why"),
    [
        (StrategyUse("layers", 2, "cpu"), {}, "the processors are one; use single"),
        (StrategyUse("layers", 1, "cuda"), {}, "2 devices or more; use single for one"),
        (StrategyUse("layers", 5, "cuda"), {}, "needs 5 cuda devices; this host has 4"),
        (StrategyUse("layers", 2, "cuda", options=StrategyOptions(split=(1, 1, 1))), {}, "split names 3 stages"),
        (StrategyUse("layers", 2, "cuda"), {"compile": True}, "use pipeline, which compiles each stage"),
        (StrategyUse("layers", 2, "cuda"), {"transport": "shm"}, "exchanges nothing by transport = shm"),
        (StrategyUse("layers", 2, "cuda"), {"compression": "fp16"}, "compression = fp16 would change nothing"),
    ],
)
def test_what_does_not_fit_says_why(use: StrategyUse, execution: dict[str, object], why: str) -> None:
    with pytest.raises(Unfit, match=why):
        strategy(use).seats(FOUR, 64, ExecutionSpec(**execution))  # type: ignore[arg-type]


def test_a_chain_keeps_to_one_node() -> None:
    nodes = Host("c", 8, 1, "s", FOUR.devices[:2], nodes=2, seats_per_node=2)
    with pytest.raises(Unfit, match="not its one node; use pipeline"):
        strategy(StrategyUse("layers", 4, "cuda")).seats(nodes, 64)


LM = {"vocabulary": 11, "length": 4, "layers": 2, "width": 8, "heads": 2, "ff": 8}
META = torch.device("meta")


def test_parts_lie_where_they_are_put() -> None:
    work = workload("transformer-lm", {**LM, "tied": False})
    model = work.model()
    assert spread(work, model, (2, 3), [CPU, META]) is model
    for name, value in model.named_parameters():
        assert value.device == (CPU if name.startswith(("0.", "1.")) else META)
    chain = Chain(work, model, (2, 3), [CPU, META])
    # Outputs stay with the last device, where the loss is taken.
    assert chain(torch.zeros(3, 4, dtype=torch.int64)).device == META
    assert set(chain.state_dict()) == {f"core.{name}" for name in model.state_dict()}


def test_a_weight_that_an_earlier_stage_holds_comes_along() -> None:
    work = workload("transformer-lm", LM)
    model = work.model()
    assert isinstance(model, nn.Sequential)
    for number in (2, 3):
        model[number].to(META)
    chain = Chain(work, model, (2, 3), [CPU, META])
    assert [set(foreign) for foreign in chain._foreign] == [set(), {"2.weight"}]
    assert chain(torch.zeros(3, 4, dtype=torch.int64)).device == META
    assert model[4].weight.device == CPU


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_on_two_devices_a_tied_network_learns_as_on_one() -> None:
    work = workload("transformer-lm", {**LM, "dropout": 0.0})
    tokens = torch.arange(12, device="cuda:0").reshape(3, 4) % 11
    chosen = strategy(StrategyUse("layers", 2, "cuda", options=StrategyOptions(split=(2, 3))))
    found = list[list[torch.Tensor]]()
    for one, devices in ((chosen, ("cuda:0", "cuda:1")), (strategy(StrategyUse("single", 1, "cuda")), ("cuda:0",))):
        torch.manual_seed(0)
        train = TrainSpec(batch=3, optimizer="adamw", lr=0.01, clip_norm=0.5)
        learner = one.build(work, work.model(), Seat(0, 0, devices, (0, 3), 1), train, ExecutionSpec("fp64"))
        losses = [learner.step(tokens, tokens, 12, 3) for _ in range(5)]
        outputs = learner.predict(tokens)
        assert outputs is not None
        assert outputs.device == tokens.device
        made = [*losses, outputs, *learner.state()["model"].values()]
        found.append([value.cpu() for value in made if value is not None])
    for one_value, other in zip(*found, strict=True):
        torch.testing.assert_close(one_value, other, rtol=1e-10, atol=1e-12)


def test_a_network_in_two_stages_learns_as_one() -> None:
    chosen = strategy(StrategyUse("layers", 2, "cpu", simulate=True, options=StrategyOptions(split=(3, 5))))
    work = workload("mlp", {"dropout": 0.0})
    rows, targets = torch.randn(6, 1, 28, 28), torch.arange(6)
    seen = list[torch.Tensor]()
    for one in (chosen, strategy(StrategyUse("single", 1, "cpu"))):
        torch.manual_seed(0)
        model = work.model()
        assert isinstance(model, nn.Sequential)
        seat = Seat(0, 0, ("cpu",) * one.stages, (0, 6), 1)
        learner = one.build(work, model, seat, TrainSpec(batch=6), PLAIN)
        loss = learner.step(rows, targets, 6, 6)
        outputs = learner.predict(rows)
        assert loss is not None
        assert outputs is not None
        assert not model.training
        seen += [loss, outputs, *learner.state()["model"].values()]
    assert all(torch.equal(*pair) for pair in zip(seen[: len(seen) // 2], seen[len(seen) // 2 :], strict=True))
