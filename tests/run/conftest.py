"""Campaigns of real processes on a small data set."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.write_images(tmp_path_factory.mktemp("images"))


@pytest.fixture(scope="session")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return tiny.environment(tmp_path_factory.mktemp("cache"))
