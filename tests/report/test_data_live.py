"""What is shown while a set is read or fetched: bars on a terminal, a line now and then elsewhere."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from escala.report.data_live import bars, lines
from escala.report.live import QUIET_S


def test_lines_come_rarely() -> None:
    now, told = [0.0], list[str]()
    follow = lines(told.append, lambda: now[0])
    for second in range(0, int(3 * QUIET_S), 2):
        now[0] = float(second)
        follow("train", 100 * second, None if second > 15 else 3000)
    assert told == ["train: 1,000 of 3,000", "train: 2,000"]


def test_bars_name_what_is_worked_on_and_vanish() -> None:
    screen = StringIO()
    with bars(Console(file=screen, force_terminal=True, width=100)) as follow:
        follow("train", 10, 60)
        follow("train", 1_000, None)
        follow("[bold]evil", 1, 2)
        during = len(screen.getvalue())
    shown = screen.getvalue()
    assert "train" in shown
    assert "1,000" in shown
    assert "[bold]evil" in shown
    assert len(shown) > during
