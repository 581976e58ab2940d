"""The campaign folder: what was asked for, the host, the records and the logs."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from escala.store.changes import changes
from escala.store.files import TEMPORARY, disk_errors, names_in, write_atomic
from escala.store.journal import Journal, read
from escala.store.lock import LOCK_NAME
from escala.store.plain import not_finite, to_plain
from escala.store.scrub import scrub, scrub_arguments
from escala.terms.errors import EscalaError
from escala.terms.experiment import Experiment
from escala.terms.host import Host

SCHEMA = 1
MAY_CHANGE = frozenset(
    {
        "measure.repeats",
        "measure.tolerance",
        "measure.attribute",
        "measure.cooldown_s",
        "measure.heartbeat_s",
        "measure.stall_s",
        "measure.meters",
        "measure.sample_s",
        "measure.idle_s",
        "measure.grid_g_per_kwh",
        "title",
        "about",
    }
)
_ROW_REPEATS = re.compile(r"strategy\[\d+\]\.repeats")
_TOLD_ONLY = ("published", "source")
"""Tables that say what others measured; no trial depends on them."""
_SHOWN = 5

_T = TypeVar("_T")


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a person asked for: the resolved experiment, and the words it was made from, without secrets."""

    schema: int = SCHEMA
    experiment: Experiment
    source: str = ""
    overrides: tuple[str, ...] = ()
    command: str = ""
    quick: bool = False
    """The experiment is the quick form of its source."""


class _Version(msgspec.Struct):
    schema: int


@dataclass(frozen=True)
class Campaign:
    """A campaign's folder, as an absolute path, and the places in it."""

    folder: Path

    @property
    def experiment(self) -> Path:
        """What was asked for: `Asked` as JSON."""
        return self.folder / "experiment.json"

    @property
    def host(self) -> Path:
        """The machine that the campaign last ran on, as JSON."""
        return self.folder / "host.json"

    @property
    def records(self) -> Path:
        """The log of results."""
        return self.folder / "records.jsonl"

    @property
    def logs(self) -> Path:
        """Folder of what the trials printed."""
        return self.folder / "logs"

    @property
    def checkpoints(self) -> Path:
        """Folder of a training's checkpoints; that of a campaign has none."""
        return self.folder / "checkpoints"


def create_or_open(
    folder: Path,
    experiment: Experiment,
    source_text: str,
    overrides: tuple[str, ...] | list[str],
    command: tuple[str, ...] | list[str],
    *,
    quick: bool = False,
) -> Campaign:
    """The campaign in `folder`: made there, or opened if it asks for the same trials.

    Call it while holding the folder's lock, so that two starts cannot both make it. Raises CFG-CAMPAIGN if the
    folder holds another experiment or other files, CFG-RANGE for a number that is not finite, ENV-DISK.
    """
    asked = _asked(experiment, source_text, overrides, command, quick)
    campaign = Campaign(Path(os.path.abspath(folder)))
    with disk_errors(campaign.folder):
        names = names_in(campaign.folder)
    if campaign.experiment.name in names:
        _go_on(campaign, asked)
    elif others := sorted(name for name in names if name != LOCK_NAME and not name.startswith(TEMPORARY)):
        raise EscalaError(
            "CFG-CAMPAIGN",
            str(campaign.folder),
            f"is not empty and no campaign: {others[0]!r} is in it",
            next_step="use a new or empty --out folder",
        )
    else:
        write_atomic(campaign.experiment, _pretty(asked))
    with disk_errors(campaign.logs):
        names_in(campaign.logs)
    return campaign


def open_campaign(folder: Path) -> Campaign:
    """A campaign to report on; nothing is written. Raises RES-CAMPAIGN if there is none in `folder`, ENV-DISK."""
    campaign = Campaign(Path(os.path.abspath(folder)))
    next_step = "give the --out folder of an escala run"
    with disk_errors(campaign.folder, doing="read"):
        try:
            names = sorted(os.listdir(campaign.folder))
            if campaign.experiment.name in names:
                return campaign
            what = f"is no campaign: there is no {campaign.experiment.name} in it"
            if within := [name for name in names if os.path.isfile(Campaign(campaign.folder / name).experiment)]:
                more = f" and {len(within) - _SHOWN} more" if len(within) > _SHOWN else ""
                next_step = f"give one of those in it: {', '.join(within[:_SHOWN])}{more}"
        except FileNotFoundError:
            what = "does not exist"
        except NotADirectoryError:
            what = "is no folder"
    raise EscalaError("RES-CAMPAIGN", str(campaign.folder), what, next_step=next_step)


def write_host(campaign: Campaign, host: Host) -> None:
    """Keep the machine as plain data. Raises ENV-DISK."""
    write_atomic(campaign.host, _pretty(host))


def read_asked(campaign: Campaign) -> Asked:
    """What the campaign was asked for. Raises RES-CAMPAIGN if it cannot be understood, RES-SCHEMA, ENV-DISK."""
    with disk_errors(campaign.experiment, doing="read"):
        data = campaign.experiment.read_bytes()
    version = _decode(data, _Version, campaign.experiment).schema
    if version > SCHEMA:
        what = f"the campaign has schema {version}, this version reads up to {SCHEMA}"
        next_step = "install the version of escala that made it"
        raise EscalaError("RES-SCHEMA", str(campaign.experiment), what, next_step=next_step)
    return _decode(data, Asked, campaign.experiment)


def read_host(campaign: Campaign) -> Host | None:
    """The machine that was written last; None: none was yet. Raises RES-CAMPAIGN, ENV-DISK."""
    with disk_errors(campaign.host, doing="read"):
        try:
            data = campaign.host.read_bytes()
        except FileNotFoundError:
            return None
    return _decode(data, Host, campaign.host)


def read_records(campaign: Campaign, *, curves: bool = True) -> Journal:
    """The campaign's records, as `journal.read` gives them, with the same errors."""
    return read(campaign.records, curves=curves)


def _asked(
    experiment: Experiment,
    source_text: str,
    overrides: tuple[str, ...] | list[str],
    command: tuple[str, ...] | list[str],
    quick: bool,
) -> Asked:
    if key := not_finite(msgspec.to_builtins(experiment), ""):
        raise EscalaError("CFG-RANGE", key, "is not a finite number", next_step="give it a finite value")
    asked = Asked(
        experiment=experiment,
        source=scrub(source_text),
        overrides=scrub_arguments(overrides),
        command=shlex.join(scrub_arguments(command)),
        quick=quick,
    )
    # As it will read back, so that it can be compared with what stands in a file.
    return msgspec.convert(to_plain(asked), Asked)


def _go_on(campaign: Campaign, asked: Asked) -> None:
    there = read_asked(campaign)
    if there.quick != asked.quick:
        forms = ("in full", "in its quick form")
        raise EscalaError(
            "CFG-CAMPAIGN",
            str(campaign.folder),
            f"holds another experiment: it was asked for {forms[there.quick]} there and {forms[asked.quick]} now",
            next_step=f"{'give' if there.quick else 'leave out'} --quick, or use another --out folder",
        )
    found = list(changes(to_plain(there.experiment), to_plain(asked.experiment)))
    forbidden = [change for change in found if not _may_change(change.key)]
    if forbidden:
        shown = ", ".join(f"{change.key} is {change.old} there and {change.new} now" for change in forbidden[:_SHOWN])
        more = f" and {len(forbidden) - _SHOWN} more" if len(forbidden) > _SHOWN else ""
        raise EscalaError(
            "CFG-CAMPAIGN",
            str(campaign.folder),
            f"holds another experiment: {shown}{more}",
            next_step="use another --out folder",
        )
    if found:
        write_atomic(campaign.experiment, _pretty(asked))


def _may_change(key: str) -> bool:
    return key in MAY_CHANGE or key.startswith(_TOLD_ONLY) or _ROW_REPEATS.fullmatch(key) is not None


def _pretty(value: msgspec.Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(to_plain(value)), indent=2) + b"\n"


def _decode(data: bytes, kind: type[_T], path: Path) -> _T:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise EscalaError(
            "RES-CAMPAIGN",
            str(path),
            f"cannot be understood: {error}",
            next_step="put the file back as it was written, or run again with another --out folder",
        ) from error
