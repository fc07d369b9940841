"""All that is audited."""

from collections.abc import Iterator
from importlib import import_module

from audit.archive import Archive
from audit.audited import Table
from audit.database_table import DatabaseTable
from audit.ingested import Ingested, ingested
from audit.letters import DeadLetters
from audit.versions import versions_of
from contract.domains import NAMES
from contract.settings import Settings


def audited(settings: Settings) -> Iterator[Table | DeadLetters | Archive | Ingested | DatabaseTable]:
    """The results of all domains, and of topics that were ingested here.

    Those of a domain are tables, their versions and their copies in the database, dead letters, and archives as Parquet files and Delta tables.

    A domain without a file here has none: its queries are not audited.
    """
    copied: set[str] = set()
    for name in NAMES:
        for one in import_module(f"audit.domains.{name}").audited(settings):
            yield one
            if isinstance(one, Table):
                yield from versions_of(one, settings)
                if not one.value and one.query not in copied:
                    copied.add(one.query)
                    yield DatabaseTable(one)
            elif isinstance(one, Archive):
                yield one.in_delta
    yield from ingested(settings)
