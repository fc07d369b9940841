"""How long result rows are kept. The one place of `verify` that knows it."""

import re
from datetime import timedelta

from streamgauge.settings import Settings


def result_retention(settings: Settings) -> timedelta | None:
    """How long before the newest window of its table a window may have ended and still be there; None: rows are kept for ever."""
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*(second|minute|hour|day)", getattr(settings, "result_retention", ""), re.IGNORECASE)
    return timedelta(**{f"{unit.lower()}s": float(count) for count, unit in parts}) if parts else None
