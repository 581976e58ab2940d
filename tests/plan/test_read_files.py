"""Where experiments are read from, and files that are none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from escala.plan import studies
from escala.plan.read import read
from escala.plan.source import LARGEST_FILE
from escala.terms.errors import EscalaError, Exit

TEXT = '[workload]\nname = "mlp"\n[train]\nepochs = 1\n[[strategy]]\nname = "single"\n'


def refused(source: Path | str) -> EscalaError:
    with pytest.raises(EscalaError) as caught:
        read(str(source))
    return caught.value


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(TEXT)
    loaded = read(str(path))
    assert (loaded.text, loaded.where) == (TEXT, str(path))


def test_a_study_is_read_by_its_name_even_beside_a_folder_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("quickstart").mkdir()
    loaded = read("quickstart")
    assert loaded.where == "study quickstart"
    assert loaded.text == studies.text("quickstart")


def test_an_error_in_a_study_names_the_study() -> None:
    with pytest.raises(EscalaError) as caught:
        read("quickstart", ["measure.baseline=nobody", "strategy.0.label=x"])
    assert caught.value.where == "--set measure.baseline=nobody"
    with pytest.raises(EscalaError) as caught:
        read("quickstart", ["strategy.0.label=x"])
    assert caught.value.where.startswith("study quickstart:")


@pytest.mark.parametrize("source", ["quikstart", "quick-start", "Quickstart", "runs/quikstart.toml"])
def test_a_name_that_is_nothing_is_answered_with_the_nearest_study(source: str) -> None:
    error = refused(source)
    assert (error.code, error.where, error.exit) == ("CFG-FILE", source, Exit.CONFIG)
    assert error.next_step == "did you mean quickstart?"
    assert all(name in error.expected for name in studies.names())


def test_what_cannot_be_opened_is_refused_with_the_reason(tmp_path: Path) -> None:
    loop = tmp_path / "loop.toml"
    loop.symlink_to(loop)
    assert "symbolic links" in refused(loop).what
    assert "folder" in refused(tmp_path).what
    assert "no such file" in refused(tmp_path / "none.toml").what
    assert "no such file" in refused("").what
    (tmp_path / "file").touch()
    assert "no such file" in refused(tmp_path / "file" / "x.toml").what
    assert "no file name" in refused("a\0b.toml").what
    assert "too long" in refused("x" * 5000 + ".toml").what


def test_a_file_without_permission_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_permission(*_: object) -> None:
        raise PermissionError(13, os.strerror(13))

    path = tmp_path / "mine.toml"
    path.write_text(TEXT)
    # The tests may run as root, whom no mode keeps out.
    monkeypatch.setattr("builtins.open", no_permission)
    error = refused(path)
    assert (error.code, error.where, error.what) == ("CFG-FILE", str(path), "cannot be read: Permission denied")


def test_a_byte_that_is_not_utf8_is_named_with_its_offset(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(TEXT.encode() + b'title = "\xe4"\n')
    error = refused(path)
    assert (error.code, error.where) == ("CFG-FILE", f"{path}:7")
    assert f"byte 0xE4 at offset {len(TEXT) + 9} " in error.what
    path.write_bytes(TEXT.encode("utf-16"))
    assert "byte 0xFF at offset 0 " in refused(path).what


def test_a_byte_order_mark_and_windows_line_ends_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode())
    assert read(str(path)).experiment.workload.name == "mlp"
    path.write_bytes(b"\xef\xbb\xbf" + f"{TEXT}wys = 1".replace("\n", "\r\n").encode())
    assert refused(path).where == f"{path}:7"


def test_a_file_without_end_is_refused(tmp_path: Path) -> None:
    assert "too large" in refused("/dev/zero").what
    path = tmp_path / "mine.toml"
    path.write_text(TEXT + "#" * LARGEST_FILE)
    assert "too large" in refused(path).what
    path.write_text(TEXT + "#" * (LARGEST_FILE - len(TEXT)))
    assert read(str(path)).experiment.workload.name == "mlp"


@pytest.mark.parametrize("ending", [".yaml", ".yml", ".toml", ""])
@pytest.mark.parametrize(
    "tagged",
    [
        "x: !!python/object/apply:os.system ['touch {marker}']",
        "!!python/object/new:os.system ['touch {marker}']",
        "- [!!python/name:os.system ]",
        "x: !<tag:yaml.org,2002:python/object/apply:os.system> ['touch {marker}']",
        "%TAG !p! tag:yaml.org,2002:python/\n--- !p!object/apply:os.system ['touch {marker}']",
    ],
)
def test_a_tag_that_asks_for_code_is_refused_as_unsafe(tmp_path: Path, ending: str, tagged: str) -> None:
    marker = tmp_path / "marker"
    path = tmp_path / f"mine{ending}"
    path.write_text(f"# !!python/none\nworkload: mlp\n{tagged.format(marker=marker)}\n")
    error = refused(path)
    assert (error.code, error.exit, error.where) == ("CFG-TAG", Exit.UNSAFE, f"{path}:3")
    assert not marker.exists()


@pytest.mark.parametrize("ending", [".yaml", ".yml"])
def test_yaml_is_not_read(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"mine{ending}"
    path.write_text("train:\n  lr: 1e-3\n  lr: 2e-3\n")
    error = refused(path)
    assert (error.code, error.exit, error.expected) == ("CFG-SYNTAX", Exit.CONFIG, "experiments are TOML")


def test_a_tag_inside_good_toml_is_just_text(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'about = "x: !!python/object/apply:os.system"\n{TEXT}')
    assert read(str(path)).experiment.about.startswith("x: !!python")
