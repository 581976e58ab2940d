"""A real browser for tests that need one, where there is one."""

from __future__ import annotations

from pathlib import Path

PLACES = (Path("/usr/bin/chromium"), Path("/usr/bin/chromium-browser"), Path("/usr/bin/google-chrome"))


def found() -> tuple[Path | None, str]:
    """The browser's program; or None and why there is none."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return None, "needs Playwright, of the extra dev"
    place = next((place for place in PLACES if place.exists()), None)
    return place, "" if place else f"needs a browser: {' or '.join(map(str, PLACES))}; try: apt-get install chromium"
