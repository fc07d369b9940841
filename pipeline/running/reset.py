"""Resets a query to the state before its first run: deletes its checkpoints and its results.

A reset holds the checkpoints' locks from start to finish. The lock files remain, empty. It deletes the results first, and its mark next to
the checkpoint last. So an interrupted reset can be repeated, and until then no query continues on the rest of its results.
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from contract.checkpoints.names import CONSOLE, CheckpointName, remains_of
from infrastructure.errors import check_names
from infrastructure.settings import Settings
from infrastructure.storage.paths import StoragePath, write_whole
from infrastructure.storage.removal import bytes_on_disk, remove
from infrastructure.text import size_text
from pipeline.catalog import all_queries
from pipeline.checkpoint.use import RESET, check_owner, interrupted_resets, locked
from pipeline.ingest.upsert import ingest_named
from pipeline.query import Query
from pipeline.sinks.sink import Deletion


def named(name: str, settings: Settings) -> Query:
    """The query of that name, or its console variant (`<name>-console`). Raises StreamgaugeError for an unknown name."""
    by_name, printed = {query.name: query for query in all_queries(settings)}, name.removesuffix(CONSOLE)
    if printed not in by_name and _remains(printed, settings) and (ingest := ingest_named(printed)):
        by_name[printed] = ingest  # its table is gone, which told of it
    check_names("query", [printed], by_name)
    return by_name[printed] if printed == name else by_name[printed].on_console()


@contextmanager
def locked_checkpoints(query: Query, settings: Settings) -> Iterator[None]:
    """Prevents the query from starting, in any mode. Raises StreamgaugeError when it is running."""
    check_owner(settings)
    existing = {name for path in remains_of(query.name, settings) if (name := CheckpointName.of(path.name))}
    with ExitStack() as locks:
        # First the one with a Spark driver, which the error then names: a query that runs holds those of its other mode, too.
        for place in sorted(
            (name.place(settings) for name in query.names_in_all_modes | existing), key=lambda place: (place.driver is None, place.name)
        ):
            locks.enter_context(locked(place))
        yield


def deletions(query: Query, settings: Settings) -> list[Deletion]:
    """The deletions of a reset of the query, in order. Empty if there is nothing to delete.

    Raises StreamgaugeError when the result cannot be inspected, e.g. because Kafka cannot be reached.
    """
    remains = _remains(query.name, settings)
    shown = ", ".join(sorted({str(CheckpointName.of(path.name)) for path in remains}))
    size = size_text(sum(map(bytes_on_disk, remains)))

    def remove_all() -> None:
        for path in remains:
            if path.suffix != RESET:
                remove(path)

    of_checkpoints = [Deletion(f"checkpoint {shown} in {settings.checkpoints}, {size}", remove_all)] if remains else []
    return [*query.sink.deletions(settings), *of_checkpoints]


def delete(query: Query, settings: Settings, to_delete: Iterable[Deletion]) -> None:
    """Deletes what `deletions` has found. Until all of it is gone, the query does not start."""
    write_whole(query.checkpoint_name.place(settings).sidecar(RESET), "")
    for deletion in to_delete:
        deletion.do()
    for mark in interrupted_resets(query.name, settings):
        remove(mark)


def _remains(query: str, settings: Settings) -> list[StoragePath]:
    # Lock files stay: an unlinked lock file locks nobody out, because another process would lock a new file of the same name.
    return [path for path in remains_of(query, settings) if path.suffix != ".lock"]
