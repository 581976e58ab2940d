"""What `escala probe` shows: the machine, and which strategies fit it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from escala.analyse.language import say
from escala.analyse.plain import LONGEST_NAME, LONGEST_REASON, plain
from escala.analyse.wording import counted, size
from escala.meters.base import Channel
from escala.plan.power import MeterFound
from escala.report.screen import columns_of, drawn, notes
from escala.terms.host import Host


def host_text(
    host: Host,
    fits: Sequence[tuple[str, str | None]],
    meters: Sequence[MeterFound] = (),
    *,
    width: int | None = None,
    colour: bool = False,
) -> str:
    """The host; of each strategy in `fits` and each meter that it fits or what it reads, or the reason why not.

    `width` in columns; left out, the terminal's.
    """
    return drawn(_parts(host, fits, meters), columns_of(width), colour=colour)


def _parts(
    host: Host, fits: Sequence[tuple[str, str | None]], meters: Sequence[MeterFound]
) -> Iterator[RenderableType]:
    yield Text("This machine", style="bold")
    yield notes([(name, plain(value, LONGEST_REASON)) for name, value in facts(host)])
    yield Text("")
    yield Text("Strategies", style="bold")
    yield notes([(plain(name, LONGEST_NAME), _answer(reason)) for name, reason in fits])
    if meters:
        yield Text("")
        yield Text("Energy", style="bold")
        yield notes([(plain(one.name, LONGEST_NAME), _reads(one)) for one in meters])


def facts(host: Host) -> Iterator[tuple[str, str]]:
    """What is known of a machine: a name and a value each, as they are told."""
    if host.name:
        yield say("name"), host.name
    yield say("system"), host.system
    yield say("processor"), say("{cpu}, {cores} usable", cpu=host.cpu, cores=counted(host.cores, "core"))
    yield say("memory"), size(host.memory_bytes)
    if not host.devices:
        yield say("devices"), say("no accelerator: strategies run on the processor")
    for device in host.devices:
        yield plain(device.key), f"{device.name}, {size(device.memory_bytes)}"
    if host.nodes > 1:
        yield say("nodes"), str(host.nodes)
    if host.software:
        yield say("software"), ", ".join(f"{name} {version}" for name, version in host.software.items())
    if host.environment:
        yield say("environment"), ", ".join(f"{name}={value}" for name, value in host.environment.items())


def _answer(reason: str | None) -> str:
    return "fits" if reason is None else f"does not fit: {plain(reason, LONGEST_REASON)}"


def _reads(found: MeterFound) -> str:
    if found.reason is not None:
        return f"reads nothing: {plain(found.reason, LONGEST_REASON)}"
    return "; ".join(_part(channel) for channel in found.channels)


def _part(channel: Channel) -> str:
    if channel.reason is not None:
        return f"{plain(channel.where)} not: {plain(channel.reason, LONGEST_REASON)}"
    return f"{plain(channel.where)} ({channel.joules or channel.watts})"
