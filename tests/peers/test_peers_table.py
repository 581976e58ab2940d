from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import escala.peers
from escala.peers import PEERS, load
from escala.peers.base import Peer
from escala.peers.lines import BEGINS, ENDS, user_lines, user_lines_of


def test_the_table_holds_every_peer_and_imports_none_of_their_packages() -> None:
    folder = Path(escala.peers.__file__).parent
    helpers = {"__init__", "base", "fit", "layers", "lines", "torch_parts"}
    assert set(PEERS) == {path.stem for path in folder.glob("*.py")} - helpers
    packages = {package for kind in PEERS.values() for package in kind.packages} | {"torch"}
    code = f"import sys, escala.peers.fit; print(sorted({packages!r} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_peer_without_packages_loads() -> None:
    assert issubclass(load("plain"), Peer)


@pytest.mark.parametrize("name", PEERS)
def test_every_peer_marks_what_its_user_would_write(name: str) -> None:
    assert 5 < user_lines_of(Path(escala.peers.__file__).parent / f"{name}.py") < 60


def test_only_code_between_marks_counts() -> None:
    inside = "a = 1\n\n    # a reason\n    edges.training_begins()\n    b = edges\n"
    assert user_lines(f"before\n{BEGINS}\n{inside}{ENDS}\nbetween\n  {BEGINS}\nc\n  {ENDS}\nafter\n") == 3


@pytest.mark.parametrize(
    "source", ["", "a = 1\n", f"{BEGINS}\na\n", f"{ENDS}\na\n{BEGINS}\n", f"{BEGINS}\n{BEGINS}\na\n{ENDS}\n{ENDS}\n"]
)
def test_marks_that_do_not_match_are_refused(source: str) -> None:
    with pytest.raises(ValueError, match="mark"):
        user_lines(source)
