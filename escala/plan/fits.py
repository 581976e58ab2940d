"""Which strategies fit a host."""

from __future__ import annotations

from escala.strategies import STRATEGIES, strategy
from escala.terms.errors import Unfit
from escala.terms.host import Host
from escala.terms.trial import StrategyUse

_BATCH = 1024


def fits(host: Host) -> tuple[tuple[str, str | None], ...]:
    """(strategy on a kind of device with so many ways, reason why it does not fit or None)."""
    kinds = ["cpu"] + [kind for kind in ("cuda", "mps", "xpu") if host.of_kind(kind)]
    rows = []
    for kind in kinds:
        most = host.cores if kind == "cpu" else len(host.of_kind(kind))
        for name in STRATEGIES:
            for ways in (1,) if name == "single" else sorted({1, 2, most}):
                title = f"{name} {kind}" if name == "single" else f"{name} x{ways} {kind}"
                rows.append((title, _reason(StrategyUse(name, ways, kind), host)))
    return tuple(rows)


def _reason(use: StrategyUse, host: Host) -> str | None:
    try:
        strategy(use).seats(host, _BATCH)
    except Unfit as reason:
        return str(reason)
    return None
