"""How long result rows are kept. The one place of `verify` that knows it."""

from datetime import timedelta

from streamgauge.settings import Settings

_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}


def result_retention(settings: Settings) -> timedelta | None:
    """How long before the newest window of its table a window may have ended and still be there; None: rows are kept for ever."""
    text = getattr(settings, "result_retention", None)
    if not text:
        return None
    number, unit = str(text).split()
    return timedelta(seconds=float(number) * _SECONDS[unit.rstrip("s")])
