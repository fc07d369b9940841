"""What the Overview page shows of a domain, which the domain's page makes from its tables."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dashboard.charts import Spec
from dashboard.origin import Origin


@dataclass(frozen=True)
class Glance:
    """label, value, meaning, origin: of the number that matters. course: its values before, oldest first. picture: makes a chart, described by `alt`."""

    label: str
    value: str
    meaning: str
    origin: Origin
    course: Sequence[float]
    picture: Callable[[], Spec]
    alt: str


LookAt = Callable[[], Glance | None]
"""What a domain's page may define as `glance`. None while its tables are empty."""
