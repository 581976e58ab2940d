"""The end of a training, as text."""

from __future__ import annotations

from pathlib import Path

import msgspec

from escala.analyse.plain import LONGEST_REASON, plain
from escala.analyse.wording import counted, number
from escala.report.progress import ended_text, trial_text
from escala.terms.record import Record


def train_text(record: Record, weights: Path | None) -> str:
    """What came of it, in two lines: the score, and where the weights are."""
    parts = [ended_text(record), counted(record.steps, "step")]
    if record.epochs:
        parts.append(f"mean loss of the last epoch {number(record.epochs[-1].loss)}")
    lines = [f"{trial_text(record.trial)}: {', '.join(parts)}"]
    if weights is not None:
        lines.append(f"weights: {plain(str(weights), LONGEST_REASON)}")
    return "\n".join(lines) + "\n"


def json_text(record: Record, weights: Path | None) -> str:
    """The same for programs."""
    told = {
        "outcome": record.outcome,
        "reason": record.reason,
        "score": record.score,
        "steps": record.steps,
        "id": record.id,
        "weights": str(weights) if weights else None,
    }
    return msgspec.json.format(msgspec.json.encode(told), indent=2).decode() + "\n"
