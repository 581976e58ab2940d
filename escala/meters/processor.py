"""How long all processors of the machine worked, as the system counts it."""

from __future__ import annotations


def cpu_seconds() -> tuple[float, float]:
    """Seconds that all processors together worked, and that they were there, since the system began."""
    # Only here: the table of meters is loaded where none of them is opened.
    import psutil

    times = psutil.cpu_times()
    # Guests' time stands in that of their hosts, too.
    total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
    return total - times.idle - getattr(times, "iowait", 0.0), total
