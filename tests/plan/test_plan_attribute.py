"""The rows between a baseline and a target."""

from __future__ import annotations

import pytest

from escala.plan.attribute import MOST, attributed, subsets
from escala.plan.read import Loaded, label_of, parse, read, resolved
from escala.terms.errors import EscalaError
from escala.terms.experiment import Experiment

TEXT = """
[workload]
name = "mlp"
data = "d"
[train]
batch = 64
epochs = 2
[[strategy]]
name = "single"
[[strategy]]
name = "ddp"
ways = 2
label = "both"
execution = { precision = "bf16" }
train = { batch = 128, lr = 0.1 }
"""


def loaded(text: str = TEXT) -> Loaded:
    return parse(text, "e.toml")


def rows(experiment: Experiment) -> dict[str, tuple[int, str, int, float]]:
    found = {}
    for spec in experiment.strategy:
        train, execution = resolved(experiment, spec)
        found[label_of(spec)] = (spec.ways, execution.precision, train.batch, train.lr)
    return found


def refused(text: str) -> EscalaError:
    with pytest.raises(EscalaError) as caught:
        attributed(loaded(text))
    return caught.value


def test_all_mixtures_stand_between_the_two_ends() -> None:
    found = attributed(loaded()).experiment
    assert rows(found) == {
        "single": (1, "fp32", 64, 0.05),
        "with devices": (2, "fp32", 64, 0.05),
        "with precision": (1, "bf16", 64, 0.05),
        "with batch": (1, "fp32", 128, 0.1),
        "with devices, precision": (2, "bf16", 64, 0.05),
        "with devices, batch": (2, "fp32", 128, 0.1),
        "with precision, batch": (1, "bf16", 128, 0.1),
        "both": (2, "bf16", 128, 0.1),
    }
    assert (found.measure.baseline, found.measure.attribute) == ("single", "both")


def test_rows_that_are_there_keep_their_names_and_others_go() -> None:
    more = TEXT.replace(
        '[[strategy]]\nname = "ddp"', '[[strategy]]\nname = "ddp"\nways = 4\n[[strategy]]\nname = "ddp"'
    )
    more += '[[strategy]]\nname = "single"\nlabel = "in bf16"\nexecution = { precision = "bf16" }\n'
    found = attributed(loaded(more + '[measure]\nattribute = "both"\n')).experiment
    assert "in bf16" in rows(found)
    assert "with precision" not in rows(found)
    assert all(ways != 4 for ways, *_ in rows(found).values())


def test_the_study_of_bert_takes_devices_precision_batch_and_feed_apart() -> None:
    found = attributed(read("bert-squad", quick=True)).experiment
    assert len(found.strategy) == 16
    assert {"1 device, fp32", "1 device, bf16", "4 devices, fp32", "4 devices, bf16, batch x4"} <= rows(found).keys()
    assert "all but batch" in rows(found)
    full = attributed(read("bert-squad")).experiment
    assert len(full.published) == 3, "the figures of its source stay beside the rows they are of"
    assert max(map(len, rows(full))) <= 40, "a name is shown in full"


def test_more_than_five_factors_make_a_ladder() -> None:
    keys = 'precision = "bf16", compile = true, feed = "host", optimizer_kernel = "fused"'
    keys += ', memory_format = "channels_last"'
    text = TEXT.replace('precision = "bf16"', keys)
    found = attributed(loaded(text)).experiment
    assert len(found.strategy) == 8
    names = list(rows(found))
    assert (names[0], names[-1]) == ("single", "both")
    assert names[1] == "rung 1: and devices"
    assert [spec.ways for spec in found.strategy] == [1] + [2] * 7


def test_subsets_are_all_up_to_the_most_and_rungs_beyond() -> None:
    names = tuple("abcdefgh")
    assert len(subsets(names[:MOST])) == 2**MOST
    assert subsets(names) == tuple(frozenset(names[:count]) for count in range(9))


def test_weak_scaling_is_a_greater_batch() -> None:
    weak = TEXT.replace("train = { batch = 128, lr = 0.1 }", 'scaling = "weak"')
    assert rows(attributed(loaded(weak)).experiment)["with batch"] == (1, "fp32", 128, 0.05)


def test_a_budget_of_the_rows_own_stays() -> None:
    own = TEXT.replace('name = "single"', 'name = "single"\ntrain = { steps = 30 }').replace(
        "lr = 0.1", "lr = 0.1, steps = 30"
    )
    experiment = attributed(loaded(own)).experiment
    budgets = {
        (resolved(experiment, spec)[0].steps, resolved(experiment, spec)[0].epochs) for spec in experiment.strategy
    }
    assert budgets == {(30, None)}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (TEXT.replace("lr = 0.1", "epochs = 3"), "differ in train.epochs"),
        (TEXT + '[measure]\nattribute = "single"\n', "is both the baseline and the target"),
        (TEXT + "[sweep]\nstrategy.both.ways = [2, 4]\n", "sets keys of single strategies"),
    ],
)
def test_what_is_no_pair_is_refused(text: str, told: str) -> None:
    error = refused(text)
    assert (error.code, error.exit) == ("CFG-ATTRIBUTE", 2)
    assert told in str(error)
    assert "e.toml, --attribute" in str(error)


def test_a_mixture_that_breaks_a_rule_is_told_as_such() -> None:
    # On two ways with the baseline's batch there is no room for the microbatches that both ends have.
    error = refused(TEXT.replace("[[strategy]]", "[execution]\nmicrobatch = 64\n[[strategy]]", 1))
    assert (error.code, error.where) == ("CFG-BATCH", "e.toml, --attribute")
    assert "with devices" in error.what


def test_a_target_that_is_no_row_is_told_when_the_file_is_read() -> None:
    with pytest.raises(EscalaError, match="both"):
        loaded(TEXT + '[measure]\nattribute = "boht"\n')


def test_the_made_up_experiment_reads_back_from_a_campaign() -> None:
    import msgspec

    found = attributed(loaded()).experiment
    assert msgspec.json.decode(msgspec.json.encode(found), type=Experiment) == found
