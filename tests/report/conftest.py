"""Reports are tested on the records that the analysis is tested on."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "analyse"))
