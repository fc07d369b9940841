"""All that is audited."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TypeVar

from audit.audited import Table
from audit.checks.archive import Archive
from audit.checks.database_table import DatabaseTable
from audit.checks.dead_letters import DeadLetters
from audit.checks.ingested import Ingested, ingested
from audit.checks.versions import versions_of
from contract.checkpoints.contents import Checkpoint
from contract.checkpoints.names import CONSOLE, REAL_TIME, CheckpointPlace, checkpoints
from contract.domains import NAMES
from infrastructure.errors import StreamgaugeError, Unavailable
from infrastructure.settings import Settings

R = TypeVar("R", bound="Audited")
Audited = Table | DeadLetters | Archive | Ingested | DatabaseTable
"""What one result must be."""


def audited(settings: Settings) -> Iterator[Audited]:
    """The results of all domains, and of topics that were ingested here.

    Those of a domain are tables, their versions and their copies in the database, dead letters, and archives as Parquet files and Delta tables.

    A domain without a file here has none: its queries are not audited.
    """
    copied: set[str] = set()
    for result in of_domains(settings):
        yield result
        if isinstance(result, Table):
            yield from versions_of(result, settings)
            if not result.value and result.query not in copied:
                copied.add(result.query)
                yield DatabaseTable(result)
        elif isinstance(result, Archive):
            yield result.in_delta
    yield from ingested(settings)


def of_domains(settings: Settings) -> Iterator[Table | DeadLetters | Archive]:
    """The results of all domains, as their files here say what they must be."""
    for name in NAMES:
        yield from import_module(f"audit.domains.{name}").audited(settings)


def places_in(settings: Settings) -> list[CheckpointPlace]:
    """The checkpoints of all queries that have run here, and write rows."""
    writing = (place for place in checkpoints(settings) if not place.name.query.endswith(CONSOLE))
    return [place for place in writing if place.name.mode == REAL_TIME or Checkpoint(place.folder).planned]


def placed(result: R, places: Sequence[CheckpointPlace], settings: Settings) -> tuple[R, CheckpointPlace] | None:
    """A result in the mode that its query has run in, and that checkpoint: the one in use, or else that of the last batch. None if it has not run."""

    def last_batch(place: CheckpointPlace) -> float:
        """When it began; in real-time mode, results come before the first batch ends. A damaged checkpoint is the newest: its check names the damage."""
        try:
            begun_ms = Checkpoint(place.folder).last_begun_ms
        except Unavailable:
            raise
        except StreamgaugeError:
            return math.inf
        return begun_ms if begun_ms is not None else math.inf if settings.checkpoint_interval else -1

    own = [place for place in places if place.name.query == result.query]
    if not own:
        return None
    place = max(
        own,
        key=lambda candidate: (
            candidate.driver is not None,
            last_batch(candidate),
            candidate.name.version,
            candidate.name.mode == REAL_TIME,
        ),
    )
    if isinstance(result, Table) and place.name.mode != REAL_TIME:
        result = replace(result, mode=place.name.mode)
    return result, place
