"""A campaign that goes on must find the data that its earlier trials saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from escala.plan.preflight import Preflight
from escala.terms.errors import EscalaError
from escala.terms.record import Record
from escala.terms.trial import Trial

_SHOWN = 12


def refuse_changed_data(recorded: Mapping[str, Record], todo: Sequence[Trial], before: Preflight) -> None:
    """Raises EscalaError DATA-HASH where a trial still to do would see other data than one that was recorded.

    Only of trials with the same workload and data: another case may use other data under the same name.
    """
    saw = dict[bytes, set[str]]()
    for record in recorded.values():
        if record.outcome == "done" and record.data is not None and record.data.digest:
            saw.setdefault(_work(record.trial), set()).add(record.data.digest)
    for trial in todo:
        use = before.of_trial(trial).use
        others = saw.get(_work(trial), set()) - {use.digest}
        if trial.unfit is None and use.digest and others:
            raise EscalaError(
                "DATA-HASH",
                use.name,
                f"the data changed since this campaign's first trials: {min(others)[:_SHOWN]} then, "
                f"{use.digest[:_SHOWN]} now",
                expected="the same rows for every repeat",
                next_step="put the earlier data back, or use another --out folder",
            )


def _work(trial: Trial) -> bytes:
    work = (trial.workload, trial.options, trial.data, trial.validation, trial.limit)
    return msgspec.json.encode(work, order="deterministic")
