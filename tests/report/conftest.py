"""Reports are tested on the records that the analysis is tested on; all pages share one renderer."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "analyse"))


@pytest.fixture(scope="session")
def renderer_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("renderer")


@pytest.fixture(autouse=True, scope="module")
def _renderer_kept(renderer_cache: Path) -> Iterator[None]:
    # Nothing is left in the home of who tests.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ESCALA_CACHE", str(renderer_cache))
        yield
