from __future__ import annotations

import msgspec
import pytest

from escala.plan.expand import as_written, rounds, trials, workloads_of
from escala.plan.preflight import Facts, Preflight
from escala.plan.read import parse
from escala.terms.errors import EscalaError
from escala.terms.experiment import Experiment
from escala.terms.host import Device, Host
from escala.terms.record import DataUse
from escala.terms.trial import Trial

TEXT = """
[workload]
name = "mlp"
data = "d"
[train]
batch = 64
epochs = 1
seed = 7
[[strategy]]
name = "single"
[[strategy]]
name = "ddp"
ways = 2
train = { batch = 32 }
[[strategy]]
name = "data-parallel"
ways = 2
[measure]
repeats = 3
"""


def experiment(extra: str = "", text: str = TEXT) -> Experiment:
    return parse(text + extra, "e.toml").experiment


def expanded(asked: Experiment, host: Host | None = None, rows: int = 1000) -> tuple[Trial, ...]:
    host = host or Host(cpu="c", cores=2, memory_bytes=1, system="s")
    use = DataUse(
        name="d", origin="real", where="w", digest="x", rows={"train": rows, "validation": 0, "test": 1}, classes=10
    )
    facts = tuple(Facts(spec, "d", use, 1, 1, "accuracy") for spec in workloads_of(asked))
    return trials(asked, Preflight(host, facts))


def test_rounds_hold_each_trial_once_in_a_seeded_order() -> None:
    found = expanded(experiment())
    assert [trial.unfit is None for trial in found] == [False] + [True] * 6
    rounds = [found[1:3], found[3:5], found[5:7]]
    for number, a_round in enumerate(rounds):
        assert {trial.label for trial in a_round} == {"single", "ddp x2"}
        assert {trial.repeat for trial in a_round} == {number}
    assert found == expanded(experiment())
    labels = {
        tuple(trial.label for trial in expanded(experiment(f"order_seed = {seed}\n"))[1:]) for seed in range(12)
    }
    assert len(labels) > 1, "the order of a round never changes"


def test_repeats_have_seeds_of_their_own_shared_by_all_strategies() -> None:
    seeds = {(trial.repeat, trial.seed) for trial in expanded(experiment()) if trial.unfit is None}
    assert seeds == {(0, 7), (1, 8), (2, 9)}


@pytest.mark.parametrize(
    ("repeats", "energy", "order"),
    [(10, 3, "etttttettttte"), (5, 1, "ettttt"), (2, 3, "etete"), (3, 0, "bbb"), (3, None, "bbb")],
)
def test_energy_rounds_are_spread_between_rounds_that_only_time(repeats: int, energy: int | None, order: str) -> None:
    found = rounds(repeats, energy)
    assert "".join(role[0] for role, _ in found) == order
    for kind in {role for role, _ in found}:
        numbers = [number for role, number in found if role == kind]
        assert numbers == list(range(len(numbers)))


def test_energy_repeats_are_runs_of_their_own_with_seeds_of_their_own() -> None:
    usual = expanded(experiment())
    found = expanded(experiment("energy_repeats = 2\n"))
    singles = [trial for trial in found if trial.label == "single"]
    assert sorted((trial.role, trial.repeat, trial.seed) for trial in singles) == [
        ("energy", 3, 10),
        ("energy", 4, 11),
        ("time", 0, 7),
        ("time", 1, 8),
        ("time", 2, 9),
    ]
    assert len({trial.id for trial in found}) == len(found)
    assert not {trial.id for trial in usual if not trial.unfit} & {trial.id for trial in found}
    none = expanded(
        experiment("energy_repeats = 2\n", TEXT.replace("ways = 2\ntrain", "ways = 2\nrepeats = 0\ntrain"))
    )
    assert {trial.label for trial in none if not trial.unfit} == {"single"}


def test_a_run_under_the_profiler_comes_last_once_a_row() -> None:
    usual, found = expanded(experiment()), expanded(experiment('profile = "shares"\n'))
    assert [trial.id for trial in found[: len(usual)]] == [trial.id for trial in usual]
    assert [(trial.label, trial.role, trial.repeat) for trial in found[len(usual) :]] == [
        ("single", "profile", 3),
        ("ddp x2", "profile", 3),
    ]
    # Somebody else's loop cannot be looked into.
    peers = TEXT.replace('name = "single"\n', 'name = "single"\npeer = "plain"\n')
    labels = [trial.label for trial in expanded(experiment('profile = "trace"\n', peers)) if trial.role == "profile"]
    assert labels == ["ddp x2"]


def test_a_row_may_have_repeats_of_its_own_or_none() -> None:
    rows = TEXT.replace('name = "single"\n', 'name = "single"\nrepeats = 5\n').replace(
        "ways = 2\ntrain", "ways = 2\nrepeats = 1\ntrain"
    )
    asked = experiment(text=rows)
    found = [trial for trial in as_written(expanded(asked), asked) if trial.unfit is None]
    assert [(trial.label, trial.repeat) for trial in found] == [*(("single", n) for n in range(5)), ("ddp x2", 0)]
    none = rows.replace("repeats = 1", "repeats = 0").replace(
        'name = "data-parallel"', 'name = "data-parallel"\nrepeats = 0'
    )
    assert {trial.label for trial in expanded(experiment(text=none))} == {"single"}
    with pytest.raises(EscalaError, match="single is the baseline, and would not run"):
        experiment(text=rows.replace("repeats = 5", "repeats = 0"))


def test_ids_tell_all_trials_apart_and_do_not_depend_on_the_host() -> None:
    found = expanded(experiment())
    assert len({trial.id for trial in found}) == len(found)
    larger = expanded(experiment(), Host(cpu="other", cores=8, memory_bytes=9, system="s"))
    assert [trial.id for trial in larger] == [trial.id for trial in found]


def test_anything_that_may_change_a_result_changes_the_id() -> None:
    first = expanded(experiment())[1].id
    for change in ("lr = 0.1", "momentum = 0.9", "weight_decay = 0.1", 'optimizer = "adam"'):
        assert first not in {
            trial.id for trial in expanded(experiment(text=TEXT.replace("seed = 7", f"seed = 7\n{change}")))
        }


def test_a_strategy_of_its_own_batch_divides_that_batch() -> None:
    ddp = next(trial for trial in expanded(experiment()) if trial.label == "ddp x2")
    assert (ddp.batch, ddp.train.batch, [seat.rows for seat in ddp.seats]) == (32, 32, [(0, 16), (16, 32)])


def test_a_sweep_is_a_grid_with_its_point_in_every_trial() -> None:
    asked = experiment('[sweep]\n"train.lr" = [0.1, 0.2]\n"workload.name" = ["mlp", "cnn-small"]\n')
    found = [trial for trial in expanded(asked) if trial.unfit is None]
    points = {msgspec.json.encode(trial.point, order="sorted") for trial in found}
    assert len(points) == 4
    assert len(found) == 4 * 2 * 3
    assert all(trial.workload == trial.point["workload.name"] for trial in found)
    assert [spec.name for spec in workloads_of(asked)] == ["mlp", "cnn-small"]


def test_cases_are_run_at_every_point_and_name_their_trials() -> None:
    asked = experiment(
        '[[case]]\nname = "Wide + slow"\nset = { train.lr = 0.1 }\n'
        '[[case]]\nname = "b"\nset = { workload.name = "cnn-small" }\n[sweep]\n"train.seed" = [9, 1]\n'
    )
    found = [trial for trial in expanded(asked) if trial.unfit is None]
    assert len(found) == 2 * 2 * 2 * 3
    assert {(trial.point["case"], trial.workload, trial.train.lr) for trial in found} == {
        ("Wide + slow", "mlp", 0.1),
        ("b", "cnn-small", 0.05),
    }
    assert any(trial.id.startswith("ddp-x2-wide-slow-9-r0") for trial in found)


def test_trials_stand_as_written_whatever_order_they_run_in() -> None:
    asked = experiment(
        '[[case]]\nname = "z"\nset = { train.lr = 0.1 }\n[[case]]\nname = "a"\nset = { train.lr = 0.2 }\n'
        '[sweep]\n"train.seed" = [9, 1]\n'
    )
    found = as_written(expanded(asked), asked)
    assert sorted(trial.id for trial in found) == sorted(trial.id for trial in expanded(asked))
    rows = list(dict.fromkeys((trial.point["case"], trial.point["train.seed"], trial.label) for trial in found))
    labels = ("single", "ddp x2", "data-parallel x2")
    assert rows == [(case, seed, label) for case in "za" for seed in (9, 1) for label in labels]
    assert [trial.repeat for trial in found if trial.label == "single"][:3] == [0, 1, 2]


def test_the_best_device_of_the_host_is_taken_where_none_is_named() -> None:
    card = Device("cuda", 0, "GPU", 1)
    host = Host(cpu="c", cores=2, memory_bytes=1, system="s", devices=(card,))
    found = {trial.label: trial for trial in expanded(experiment(), host)}
    assert found["single"].seats[0].devices == ("cuda:0",)
    assert found["ddp x2"].unfit is not None
    assert "this host has 1" in found["ddp x2"].unfit


def test_ghosts_stay_whole_and_every_seat_has_one() -> None:
    text = TEXT.replace("ways = 2\ntrain", "ways = 2\nexecution = { batchnorm = 'ghost:16' }\ntrain")
    found = {trial.label: trial for trial in expanded(experiment(text=text.replace("batch = 32", "batch = 50")))}
    assert [seat.rows for seat in found["ddp x2"].seats] == [(0, 32), (32, 50)]
    with pytest.raises(
        EscalaError, match=r"17 rows a step in ghosts of 16, 2 seats .*at least 18 rows.*N of ghost"
    ) as caught:
        expanded(experiment(text=text.replace("batch = 32", "batch = 17")))
    assert caught.value.code == "CFG-SHARDS"
    assert expanded(experiment(text=text.replace("batch = 32", "batch = 18")))


def test_microbatches_do_not_cut_ghosts() -> None:
    text = TEXT + "[execution]\nbatchnorm = 'ghost:16'\nmicrobatch = "
    with pytest.raises(EscalaError, match=r"CFG-BATCH.*microbatch = 8 cuts ghosts of 16 .*set microbatch = 16"):
        experiment(text=text + "8\n")
    experiment(text=text + "16\n")


@pytest.mark.parametrize(
    ("rows", "batch", "words"),
    [(1, 64, "rank 0 would have no rows"), (1000, 1, "rank 0 would have no rows"), (0, 64, "no training rows")],
)
def test_a_seat_without_rows_is_refused(rows: int, batch: int, words: str) -> None:
    text = TEXT.replace("batch = 64", f"batch = {batch}").replace("batch = 32", f"batch = {batch}")
    with pytest.raises(EscalaError, match=words) as caught:
        expanded(experiment(text=text), rows=rows)
    assert caught.value.code == "CFG-SHARDS"


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(EscalaError) as caught:
        expanded(experiment(text=TEXT.replace('"data-parallel"', '"data-paralel"')))
    assert caught.value.code == "CFG-VALUE"
    assert "data-parallel" in str(caught.value)


def test_weak_scaling_gives_every_way_the_batch_and_says_so() -> None:
    weak = TEXT.replace("train = { batch = 32 }", 'scaling = "weak"')
    found = next(trial for trial in expanded(experiment(text=weak)) if trial.label == "ddp x2 weak")
    assert (found.batch, found.train.batch, [seat.batch for seat in found.seats]) == (128, 128, [64, 64])


def test_keys_at_their_defaults_do_not_decide_an_id() -> None:
    asked = TEXT.replace("batch = 64", 'batch = 64\nclip_norm = 1.0\nlr_rule = "none"\nschedule = "constant"')
    found, plain = expanded(experiment(text=asked))[1], expanded(experiment())[1]
    assert found.id != plain.id
    same = expanded(experiment(text=asked.replace("clip_norm = 1.0\n", "")))[1]
    assert same.id == plain.id


def test_a_warm_up_as_long_as_the_training_is_refused() -> None:
    with pytest.raises(EscalaError, match=r"train.warmup_steps = 16 leaves nothing of its 16 steps \(less than 16\)"):
        expanded(experiment(text=TEXT.replace("batch = 64", "batch = 64\nwarmup_steps = 16")))


def test_a_parameter_without_gradient_stops_ddp_unless_it_is_to_be_looked_for() -> None:
    def found(text: str) -> tuple[Trial, ...]:
        use = DataUse(name="d", origin="real", where="w", digest="x", rows={"train": 900, "test": 1}, classes=10)
        asked = experiment(text=text)
        facts = tuple(
            Facts(spec, "d", use, 1, 1, (), unused=("head.weight", "head.bias")) for spec in workloads_of(asked)
        )
        return trials(asked, Preflight(Host(cpu="c", cores=2, memory_bytes=1, system="s"), facts))

    with pytest.raises(EscalaError, match=r"2 parameters of mlp get no gradient: head\.weight, head\.bias") as caught:
        found(TEXT)
    assert (caught.value.code, caught.value.exit) == ("MODEL-UNUSED", 3)
    assert found(TEXT + '[execution]\nunused = "detect"\n')
    alone = TEXT[: TEXT.index('[[strategy]]\nname = "ddp"')]
    assert found(alone), "one device needs no exchange"


def test_options_decide_an_id_where_they_are_not_at_rest() -> None:
    def found(options: str) -> Trial:
        text = TEXT.replace('name = "ddp"\nways = 2', f'name = "fsdp"\nways = 2\n{options}')
        return next(trial for trial in expanded(experiment(text=text)) if trial.strategy.name == "fsdp")

    kept = found("options = { reshard = false }")
    assert kept.strategy.options.reshard is False
    assert kept.unfit is None
    ids = {found("").id, found("options = { reshard = true }").id, kept.id}
    assert found("").id == found("options = { reshard = true }").id
    assert len(ids) == 2
    # Trials without options keep the ids that they had before there were any.
    (ddp,) = {trial.id for trial in expanded(experiment()) if trial.label == "ddp x2" and trial.repeat == 0}
    assert ddp == "ddp-x2-r0-379bab9e"
