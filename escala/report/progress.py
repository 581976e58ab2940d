"""How far a campaign is, folded from its events, and the words that say so. No clock, no screen."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from escala.analyse.compare import point_text
from escala.analyse.plain import LONGEST_NAME, LONGEST_REASON, plain, reason_text
from escala.analyse.wording import counted, number, seconds
from escala.terms.events import CampaignStarted, Event, TrialEnded, TrialMoved, TrialStarted
from escala.terms.record import Record
from escala.terms.trial import Trial

_FOR = {"energy": "for energy", "profile": "profiled"}


class Progress(Struct, frozen=True):
    """Times are seconds on the watcher's clock. `ran` counts the trials that were run since `began`."""

    folder: str = ""
    total: int = 0
    finished: int = 0
    began: float = 0.0
    ran: int = 0
    last_end: float = 0.0
    trial: Trial | None = None
    moved: TrialMoved | None = None


def folded(progress: Progress, event: Event, now: float) -> Progress:
    """The progress after one more event."""
    if isinstance(event, CampaignStarted):
        return Progress(event.folder, event.total, event.finished, now, last_end=now)
    if isinstance(event, TrialStarted):
        return replace(progress, trial=event.trial, moved=None, total=event.total)
    if isinstance(event, TrialMoved):
        # A phase without a loss of its own leaves the latest one in sight.
        loss = progress.moved.loss if event.loss is None and progress.moved else event.loss
        return replace(progress, moved=replace(event, loss=loss))
    if isinstance(event, TrialEnded):
        # What does not fit takes no time and says nothing about the trials that do.
        ran = progress.ran + (event.record.outcome != "unfit")
        finished = min(progress.finished + 1, event.total)
        return replace(progress, finished=finished, ran=ran, last_end=now, trial=None, moved=None)
    return progress


def left_s(progress: Progress, now: float) -> float | None:
    """Seconds left, if the remaining trials take as long as those that ran; None before the first, and at the end."""
    if not progress.ran or progress.finished >= progress.total:
        return None
    each = (progress.last_end - progress.began) / progress.ran
    return max(0.0, each * (progress.total - progress.finished) - (now - progress.last_end))


def left_text(progress: Progress, now: float) -> str:
    """`about 4 min left`, or nothing where there is nothing to say."""
    left = left_s(progress, now)
    if left is None:
        return ""
    if left < 90:
        return f"about {left:.0f} s left"
    minutes = round(left / 60)
    return f"about {minutes} min left" if minutes < 90 else f"about {minutes // 60} h {minutes % 60:02} min left"


def campaign_text(event: CampaignStarted) -> str:
    """What is about to run."""
    before = f", {event.finished} of them recorded before" if event.finished else ""
    return f"{plain(event.folder, LONGEST_REASON)}: {counted(event.total, 'trial')}{before}"


def trial_text(trial: Trial) -> str:
    """`ddp x2, train.batch = 64, repeat 1`."""
    parts = [plain(trial.label, LONGEST_NAME), point_text(trial.point), f"repeat {trial.repeat + 1}"]
    if trial.role in _FOR:
        parts.append(_FOR[trial.role])
    return ", ".join(part for part in parts if part)


def seating_text(trial: Trial) -> str:
    """`2 seats, batch 64 (32 + 32)`."""
    sizes = [seat.batch for seat in trial.seats]
    if len(set(sizes)) > 1:
        each = f" ({min(sizes):,} to {max(sizes):,} a seat)"
    else:
        each = f" ({sizes[0]:,} a seat)" if len(sizes) > 1 else ""
    return f"{counted(len(sizes), 'seat')}, batch {trial.batch:,}{each}"


def moved_text(moved: TrialMoved) -> str:
    """`train, epoch 1/3, step 120/2,811, 12,345 samples/s, loss 0.512`."""
    parts = [plain(moved.phase, LONGEST_NAME)]
    if moved.epochs:
        parts.append(f"epoch {moved.epoch}/{moved.epochs}")
    if moved.steps:
        parts.append(f"step {moved.step:,}/{moved.steps:,}")
    if moved.samples_per_second is not None:
        parts.append(f"{number(moved.samples_per_second)} samples/s")
    if moved.loss is not None:
        parts.append(f"loss {number(moved.loss)}")
    return ", ".join(parts)


def ended_text(record: Record) -> str:
    """`done in 3.12 s, accuracy 0.8712`, or what went wrong."""
    if record.outcome != "done":
        reason = reason_text(record.reason)
        return f"{record.outcome}: {reason}" if reason else record.outcome
    parts = [f"done in {seconds(record.phases.total_s)}" if record.phases else "done"]
    if record.score:
        parts.append(f"{plain(record.score.name, LONGEST_NAME)} {number(record.score.value, 4)}")
    elif record.samples_per_second is not None:
        parts.append(f"{number(record.samples_per_second)} samples/s")
    return ", ".join([*parts, *record.doubts])


def place_text(number_: int, total: int) -> str:
    """`[ 4/15]`, as wide for every trial of a campaign."""
    return f"[{number_:>{len(str(total))}}/{total}]"
