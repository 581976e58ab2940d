"""Every peer in the table computes what `single` computes, within the rounding of float32."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import peering
import pytest

from escala.peers import PEERS, missing

SCRIPT = Path(peering.__file__)
TOLERANCE = 1e-5
COMPARED = 200
PLACES = [*((name, 1) for name in PEERS), ("keras", 2)]
EPOCH = ["training begins", "training ended", "validation begins", "validated"]

Told = dict[str, dict[str, np.ndarray]]


@pytest.fixture(scope="module", params=PLACES, ids=lambda place: f"{place[0]} x{place[1]}")
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """What the peer and `single` told of each case, from a fresh process."""
    name, ways = request.param
    if lacking := missing(name):
        pytest.skip(f"needs the package {' and '.join(lacking)}: make test-peers")
    folder = tmp_path_factory.mktemp("peer")
    subprocess.run([sys.executable, str(SCRIPT), name, str(ways), str(folder)], check=True, timeout=300)
    found = {
        title: dict(np.load(folder / f"{title}.npz")) for title, case in peering.CASES.items() if case.fits(ways)
    }
    assert len(found) == (len(peering.CASES) if ways == 1 else 2)
    return found


def test_the_curves_of_a_peer_are_those_of_single(told: Told) -> None:
    for case, ran in told.items():
        if peering.CASES[case].dropout:
            continue
        losses, single = ran["losses"], ran["single"]
        assert len(losses) == len(single) > COMPARED
        assert single[-5:].mean() < 0.8 * single[:5].mean(), f"{case} does not learn, so it compares nothing"
        np.testing.assert_allclose(losses[:COMPARED], single[:COMPARED], rtol=TOLERANCE, err_msg=case)
        np.testing.assert_allclose(ran["outputs"], ran["single outputs"], rtol=1e-3, atol=1e-3, err_msg=case)


def test_validation_sees_all_rows_in_their_order_after_each_epoch(told: Told) -> None:
    for case, ran in told.items():
        validated = ran["validated"]
        assert validated.shape == (peering.CASES[case].epochs, 101, 10)
        np.testing.assert_allclose(validated[-1], ran["outputs"][:101], rtol=1e-4, atol=1e-5, err_msg=case)
        assert not np.allclose(validated[0], validated[-1], atol=1e-2)


def test_edges_are_called_in_order_and_may_stop_the_training(told: Told) -> None:
    for case, ran in told.items():
        assert ran["called"].tolist() == EPOCH * peering.CASES[case].epochs
        assert ran["stopped"].tolist() == [*EPOCH, *EPOCH[:2]]


def test_dropout_is_drawn_in_training_alone(told: Told) -> None:
    if "dropout" not in told:
        pytest.skip("the case with dropout has a batch that does not divide by two devices")
    ran = told["dropout"]
    losses, single = ran["losses"], ran["single"]
    assert single[-20:].mean() < 0.9 * single[:5].mean()
    # Other random numbers, the same network: the curves differ by noise.
    assert losses[-20:].mean() == pytest.approx(single[-20:].mean(), rel=0.3)
    without = told["no rest"]["losses"]
    assert losses[-20:].mean() > 1.05 * without[-20:].mean(), "nothing is dropped"
