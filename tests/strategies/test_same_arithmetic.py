"""Every strategy in the table computes what `single` computes, within rounding."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from escala.strategies import STRATEGIES, strategy
from escala.terms.errors import Unfit
from escala.terms.experiment import StrategyOptions
from escala.terms.trial import StrategyUse

SUPPORT = Path(__file__).parents[1] / "support"
sys.path.insert(0, str(SUPPORT))
import arithmetic_cases as cases  # noqa: E402

# Every strategy in the table must say here with how many ways it is compared.
WAYS = {
    "single": (1,),
    "data-parallel": (2,),
    "ddp": (1, 2, 3),
    "zero1": (2,),
    "fsdp": (2,),
    "hsdp": (4,),
    "layers": (2,),
    "pipeline": (),
    "tensor": (2,),
}
# Further ways to use them, with options of their own.
VARIANTS = (
    StrategyUse("pipeline", 2, "", options=StrategyOptions(microbatches=2)),
    StrategyUse("pipeline", 2, "", options=StrategyOptions(schedule="gpipe", microbatches=3)),
    StrategyUse("pipeline", 2, "", options=StrategyOptions(schedule="interleaved", chunks=3, microbatches=3)),
    StrategyUse("pipeline", 4, "", simulate=True, options=StrategyOptions(replicas=2)),
    StrategyUse("tensor", 4, "", options=StrategyOptions(replicas=2)),
    StrategyUse("tensor", 4, "", options=StrategyOptions(replicas=2, shard=True)),
)
TOLERANCE = {"fp32": 1e-5, "fp64": 1e-10}

Results = dict[int, list[dict[str, np.ndarray]]]
JUDGED = -1


def uses(device: str) -> list[StrategyUse]:
    # One process has several devices on a CPU only if it pretends to.
    pretending = {"layers"} if device == "cpu" else set()
    pairs = [(name, ways) for name in STRATEGIES for ways in WAYS[name]]
    plain = [StrategyUse(name, ways, device, simulate=name in pretending) for name, ways in pairs]
    return plain + [msgspec.structs.replace(use, device=device) for use in VARIANTS]


def named(use: StrategyUse) -> str:
    return " ".join([use.name, f"x{use.ways}", *(str(value) for value in msgspec.to_builtins(use.options).values())])


def run(use: StrategyUse, folder: Path, state: Path) -> Results:
    """Results by case, one per seat."""
    folder.mkdir()
    try:
        seats = strategy(use).seats(cases.host(use.device), 64)
    except Unfit as reason:
        pytest.skip(f"{named(use)} does not fit: {reason}")
    script = str(SUPPORT / "arithmetic.py")
    told = msgspec.json.encode(use).decode()
    arguments = [[told, str(seat.rank), str(folder), str(state)] for seat in seats]
    seated = [subprocess.Popen([sys.executable, script, *words]) for words in arguments]
    assert [process.wait(600) for process in seated] == [0] * len(seats)
    judged = [dict(np.load(folder / f"judged-{seat.rank}.npz")) for seat in seats]
    return {JUDGED: judged} | {
        number: [dict(np.load(folder / f"{number}-{seat.rank}.npz")) for seat in seats]
        for number in range(len(cases.CASES))
        if cases.compared(number, use)
    }


@pytest.fixture(scope="session")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint that `single` leaves on the CPU and that every other run opens."""
    return tmp_path_factory.mktemp("checkpoint") / "state.pt"


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory, state: Path) -> Results:
    return run(StrategyUse("single", 1, "cpu"), tmp_path_factory.mktemp("arithmetic") / "single", state)


@pytest.fixture(scope="session")
def gpu_reference(tmp_path_factory: pytest.TempPathFactory, state: Path) -> Results:
    return run(StrategyUse("single", 1, "cuda"), tmp_path_factory.mktemp("arithmetic-gpu") / "single", state)


def check(results: Results, expected: Results) -> None:
    # One saved state, judged by any number of seats: the same counts to the last row.
    for seat in results[JUDGED]:
        assert seat["judged"] == 4003
        assert seat["right"] == expected[JUDGED][0]["right"]
        assert 0 < seat["right"] < 4003
    for number, case in enumerate(cases.CASES):
        if number not in results:
            continue
        seats, single = results[number], expected[number][0]
        tolerance = TOLERANCE[case.precision]
        losses = sum(seat["losses"] for seat in seats)
        assert len(losses) == case.steps
        np.testing.assert_allclose(losses, single["losses"], rtol=tolerance, err_msg=case.name)
        assert losses[-5:].mean() < losses[:5].mean(), f"{case.name} does not learn, so it compares nothing"
        names = single.keys() - {"losses"}
        # Rank 0 tells of the whole network, the others of what they hold.
        assert names <= seats[0].keys(), case.name
        for seat in seats:
            for name in names & seat.keys():
                np.testing.assert_allclose(
                    seat[name],
                    single[name],
                    rtol=100 * tolerance,
                    atol=100 * tolerance,
                    err_msg=f"{case.name} {name}",
                )


def test_every_strategy_is_compared() -> None:
    assert set(WAYS) == set(STRATEGIES)
    assert {use.name for use in uses("cpu")} == set(STRATEGIES)
    assert {case.name for case in cases.CASES} >= {*cases.BRIEF, *cases.ESSENTIAL, *cases.MESHES}
    # DataParallel's replicas cannot share statistics.
    for use in uses("cpu"):
        if use.name == "data-parallel":
            continue
        for case in cases.CASES:
            assert cases.fits(case, use) is not cases.left_out(case, use), f"{named(use)}: {case.name}"
        assert sum(cases.compared(number, use) for number in range(len(cases.CASES))) >= 6, named(use)


def test_microbatches_change_nothing_on_one_seat(reference: Results) -> None:
    plain = {replace(case, name=""): number for number, case in enumerate(cases.CASES)}
    pairs = [
        (case, number, plain[without])
        for number, case in enumerate(cases.CASES)
        if case.microbatch and (without := replace(case, name="", microbatch=None)) in plain
    ]
    assert sum(bool(case.dropout) for case, *_ in pairs) == 3
    assert any(not case.dropout for case, *_ in pairs)
    for case, cut, whole in pairs:
        tolerance = TOLERANCE[case.precision]
        for name, value in reference[whole][0].items():
            np.testing.assert_allclose(
                reference[cut][0][name],
                value,
                rtol=100 * tolerance,
                atol=100 * tolerance,
                err_msg=f"{case.name} {name}",
            )


def test_choices_of_execution_change_nothing_on_one_seat(reference: Results) -> None:
    plain = {replace(case, name=""): number for number, case in enumerate(cases.CASES)}
    chosen = [(number, case) for number, case in enumerate(cases.CASES) if case.choices]
    assert {key for _, case in chosen for key, _ in case.choices} >= {
        "memory_format",
        "compile",
        "feed",
        "capture",
        "activation_checkpointing",
    }
    for number, case in chosen:
        twin = reference[plain[replace(case, name="", choices=())]][0]
        tolerance = TOLERANCE[case.precision]
        for name, value in twin.items():
            np.testing.assert_allclose(
                reference[number][0][name],
                value,
                rtol=100 * tolerance,
                atol=100 * tolerance,
                err_msg=f"{case.name} {name}",
            )


@pytest.mark.parametrize("use", uses("cpu"), ids=named)
def test_same_arithmetic_on_cpu(use: StrategyUse, tmp_path: Path, reference: Results, state: Path) -> None:
    check(run(use, tmp_path / "run", state), reference)


@pytest.mark.gpu
@pytest.mark.parametrize("use", uses("cuda"), ids=named)
def test_same_arithmetic_on_gpu(use: StrategyUse, tmp_path: Path, gpu_reference: Results, state: Path) -> None:
    check(run(use, tmp_path / "run", state), gpu_reference)
