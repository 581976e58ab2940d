"""What a running campaign tells whoever watches it. Plain data: a screen draws it, a test collects it."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from escala.terms.record import Record
from escala.terms.trial import Trial


class CampaignStarted(Struct, frozen=True):
    """`total` trials in the campaign, of which `finished` were already recorded before this start."""

    folder: str
    total: int
    finished: int


class TrialStarted(Struct, frozen=True):
    """Trial `number` (from 1) of `total` is being launched."""

    trial: Trial
    number: int
    total: int


class TrialMoved(Struct, frozen=True):
    """Where the trial under way is. `epoch` counts from 1; `step` within the whole trial; `loss` is the latest."""

    phase: str
    epoch: int = 0
    epochs: int = 0
    step: int = 0
    steps: int = 0
    samples_per_second: float | None = None
    loss: float | None = None


class TrialEnded(Struct, frozen=True):
    """The trial under way has its record."""

    record: Record
    number: int
    total: int


class Note(Struct, frozen=True):
    """Something worth a line: a stale lock taken over, a torn tail set aside, data being drawn."""

    text: str


Event = CampaignStarted | TrialStarted | TrialMoved | TrialEnded | Note
Watcher = Callable[[Event], None]
