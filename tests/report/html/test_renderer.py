"""The renderer is put together once, and what was kept of it is used only if it is whole."""

from __future__ import annotations

from pathlib import Path

import pytest
import vl_convert

from escala.report.html.renderer import renderer, renderer_ahead


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How often it was put together."""
    calls: list[str] = []

    def bundle(snippet: str) -> str:
        calls.append(snippet)
        return f"/* renderer */ {snippet}"

    monkeypatch.setattr(vl_convert, "javascript_bundle", bundle)
    return calls


def test_it_is_made_once(tmp_path: Path, made: list[str]) -> None:
    cache = tmp_path / "not yet" / "there"
    assert renderer(cache) == renderer(cache) == f"/* renderer */ {made[0]}"
    assert len(made) == 1


@pytest.mark.parametrize("damage", [b"", b"cut", b"\xff\xfe", b"0" * 64 + b"\nalert(1)"])
def test_what_is_not_whole_is_made_again(tmp_path: Path, made: list[str], damage: bytes) -> None:
    text = renderer(tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_bytes(damage)
    assert renderer(tmp_path) == text
    assert renderer(tmp_path) == text
    assert len(made) == 2


def test_a_cache_that_cannot_be_written_costs_time_alone(tmp_path: Path, made: list[str]) -> None:
    (tmp_path / "file").write_text("no folder")
    assert renderer(tmp_path / "file") == renderer(tmp_path / "file")
    assert len(made) == 2


def test_it_can_be_made_beside_other_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: list[str]) -> None:
    monkeypatch.setenv("ESCALA_CACHE", str(tmp_path))
    text = renderer_ahead()()
    assert "vegaEmbed" in text
    assert text == renderer() == renderer_ahead()()
    # The child made it, and whoever waited for it found it kept.
    assert not made


def test_it_is_made_at_last_where_the_child_could_keep_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: list[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ESCALA_CACHE", str(tmp_path / "file"))
    assert renderer_ahead()() == f"/* renderer */ {made[0]}"
