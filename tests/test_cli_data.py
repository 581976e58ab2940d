"""The words of `escala data`: what they print, and with what they end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from escala.cli import app
from escala.data import SETS, paths
from escala.data.catalogue import ENTRIES, listed
from escala.terms.errors import EscalaError

sys.path.insert(0, str(Path(__file__).parent / "data"))
from idx_files import FILES, arrays, write_set


@pytest.fixture(autouse=True)
def own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the machine's own data sets out of the search."""
    monkeypatch.setattr(paths, "SYSTEM_FOLDER", tmp_path / "system")
    folder = tmp_path / "own"
    folder.mkdir()
    monkeypatch.setenv("ESCALA_DATA", str(folder))
    return folder


def data(*words: object) -> int:
    """The exit code of `escala data WORDS`."""
    code = app(["data", *map(str, words)], standalone_mode=False)
    return code if isinstance(code, int) else 0


def test_every_named_set_is_described() -> None:
    assert set(SETS) <= set(ENTRIES)
    for name, entry in ENTRIES.items():
        assert entry.about, name
        assert entry.workloads, name


def test_workloads_look_for_the_sets_that_are_said_to_be_for_them() -> None:
    from escala.workloads import WORKLOADS

    for name, workload in WORKLOADS.items():
        for one in workload.data:
            assert name in ENTRIES[one].workloads, one
    assert {name for entry in ENTRIES.values() for name in entry.workloads} <= set(WORKLOADS)


def test_list_tells_what_is_there(own_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_set(own_data / "fashion-mnist", arrays())
    assert data("list") == 0
    told = capsys.readouterr().out
    for name in SETS:
        assert name in told
    assert "$ESCALA_DATA/fashion-mnist" in told
    assert str(own_data) not in told
    assert "escala data get mnist" in told


def test_list_as_json(own_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_set(own_data / "mnist", arrays())
    (own_data / "mnist" / f"{FILES[0]}.gz").write_bytes(b"spoilt")
    assert data("list", "--json") == 0
    found = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert set(found) == set(SETS)
    assert found["mnist"]["found"] is None
    assert FILES[0] in found["mnist"]["fault"]
    assert found["fashion-mnist"]["fault"] is None
    assert found["fashion-mnist"]["can_get"] is True
    assert found["fashion-mnist"]["looked_in"][0] == "$ESCALA_DATA/fashion-mnist"
    assert found["synthetic"]["generated"] is True
    assert found["synthetic"]["kind"] == "images"


def test_what_the_catalogue_says_is_what_the_sets_are() -> None:
    for one in listed({}):
        if one.generated:
            assert one.kind == ENTRIES[one.name].kind
            assert one.found


def test_a_wrong_place_for_data_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESCALA_DATA", "/no/such/folder")
    with pytest.raises(EscalaError) as caught:
        data("list")
    assert caught.value.code == "DATA-PATH"


def test_check_ends_with_0_or_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = arrays()
    folder = write_set(tmp_path / "set", content)
    assert data("check", folder) == 0
    assert "Sound" in capsys.readouterr().out
    content[FILES[1]][7] = 10
    write_set(folder, content)
    assert data("check", folder) == 3
    told = " ".join(capsys.readouterr().out.split())
    assert "DATA-LABEL" in told
    assert "row 7" in told
    assert data("check", folder, "--json") == 3
    found = json.loads(capsys.readouterr().out)
    assert found["sound"] is False
    assert found["checked"]["faults"][0]["code"] == "DATA-LABEL"


def test_check_of_nothing_is_an_error() -> None:
    with pytest.raises(EscalaError) as caught:
        data("check", "/no/such/place")
    assert caught.value.code == "DATA-PATH"


def test_get_from_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hand = write_set(tmp_path / "hand", arrays())
    with pytest.raises(EscalaError) as caught:
        data("get", "mnist", "--from", hand)
    # They are not the published files, and that is seen.
    assert caught.value.code == "DATA-SUM"
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--size", "197", "--out", "x"), "--size"),
        (("--size", "0x148", "--out", "x"), "--size"),
        (("--size", "197x148", "--shares", "85/15", "--out", "x"), "--shares"),
        (("--size", "197x148", "--shares", "85/2/14", "--out", "x"), "--shares"),
        (("--size", "197x148", "--shares", "0/50/50", "--out", "x"), "--shares"),
    ],
)
def test_prepare_refuses_what_is_no_size_or_share(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    with pytest.raises(EscalaError) as caught:
        data("prepare", tmp_path, *words)
    assert (caught.value.code, caught.value.where) == ("CFG-VALUE", told)


def test_prepare_hands_its_words_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = list[Any]()

    def prepare_images(*where: Path, **words: Any) -> None:
        asked.extend((where, words))
        words.pop("progress")(3, 9)

    made = ModuleType("escala.data.image_prepare")
    vars(made)["prepare_images"] = prepare_images
    monkeypatch.setitem(sys.modules, made.__name__, made)
    out = tmp_path / "fish.escala"
    words = "--size 197x148 --grey --dtype float16 --shares 80/5/15 --seed 3 --on-bad skip --allow-empty --workers 2"
    assert data("prepare", tmp_path, "--out", out, *words.split()) == 0
    where, given = asked
    assert where == (tmp_path, out)
    assert given.pop("shares") == pytest.approx((0.80, 0.05, 0.15))
    assert given == {
        "size": (197, 148),
        "grey": True,
        "dtype": "float16",
        "seed": 3,
        "on_bad": "skip",
        "allow_empty": True,
        "workers": 2,
    }
    assert f"--set workload.data={out}" in capsys.readouterr().out


def test_help_has_an_example_of_each_and_opens_nothing_heavy() -> None:
    heavy = "{'torch', 'PIL', 'tokenizers', 'pyarrow', 'numpy'} & set(sys.modules)"
    check = f"import sys, escala.cli\nassert not {heavy}, {heavy}"
    ended = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    for verb in ("list", "check", "prepare", "get"):
        words = [sys.executable, "-m", "escala", "data", verb, "--help"]
        told = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert f"Example:  escala data {verb}" in told.stdout


def test_the_verb_works_without_torch() -> None:
    check = (
        "import sys\nfrom escala.cli import app\napp(['data', 'check', 'synthetic:50+50'], standalone_mode=False)\n"
        "app(['data', 'list'], standalone_mode=False)\nassert 'torch' not in sys.modules"
    )
    ended = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
