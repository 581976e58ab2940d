"""One renderer for all pages of these tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True, scope="session")
def _cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    patch = pytest.MonkeyPatch()
    patch.setenv("ESCALA_CACHE", str(tmp_path_factory.mktemp("cache") / Path("escala")))
