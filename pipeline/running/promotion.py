"""Makes a new version of a query, which ran beside the current one, the current one.

The topics that readers see get its rows, and then the query's own name gets its checkpoint. An interrupted promotion can be repeated: what
is already written is equal, and the move of the checkpoint comes last.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from contract.errors import StreamgaugeError
from contract.kafka.create_topics import create_topics
from contract.kafka.tombstones import write_rows
from contract.query_status import read_statuses
from contract.settings import Settings
from contract.storage.checkpoint_names import remains_of
from contract.terminal import warn
from pipeline.catalog import is_beside
from pipeline.checkpoint.contents import Checkpoint
from pipeline.query import Query
from pipeline.running.reset import locked_checkpoints, named
from pipeline.sinks.topics import CompactedTopic
from pipeline.verification.topic_table import ends_of, read_table

Changes = Mapping[str, Mapping[bytes, bytes | None]]
"""By topic and key, the value to write; None deletes the row."""


def create_own_topics(queries: Iterable[Query], settings: Settings) -> None:
    """Creates the missing topics of those `queries` that run beside another version."""
    own = [topic for query in queries if is_beside(query) for topic in cast("CompactedTopic", query.sink).topics]
    if own:
        create_topics(settings.kafka, own, replication_factor=settings.replication_factor, min_insync_replicas=settings.min_insync_replicas)


@dataclass(frozen=True)
class Promotion:
    """The promotion of `new`, which runs beside `current`: the same query under its own name."""

    new: Query
    current: Query
    settings: Settings

    @classmethod
    def of(cls, name: str, settings: Settings) -> "Promotion":
        """The promotion of the query of that name.

        Raises StreamgaugeError when it is not a version beside another, when it has not run, and when there is nothing to move it to.
        """
        new = named(name, settings)
        if not is_beside(new):
            msg = f"{name} does not run beside another version; the names of those that do end in a version, as {name}.v{new.version}"
            raise StreamgaugeError(msg)
        current = named(name.removesuffix(f".v{new.version}"), settings)
        if settings.checkpoint_uri:
            msg = f"the checkpoints are in {settings.checkpoints}, and an object store cannot rename a folder in one step; run {current.name} in its new version instead, which recounts, after `streamgauge reset {name}`"
            raise StreamgaugeError(msg)
        if not Checkpoint(new.checkpoint_name.folder(settings)).planned:
            msg = f"{name} has not run with STREAMGAUGE_HOME {settings.home}; run it first: streamgauge run {name}"
            raise StreamgaugeError(msg)
        if Checkpoint(current.checkpoint_name.folder(settings)).planned:
            msg = f"{current.name} has already run as version {current.version}, by itself: there is nothing to promote. `streamgauge reset` the one that you do not want"
            raise StreamgaugeError(msg)
        return cls(new, current, settings)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Prevents both queries from starting here. Raises StreamgaugeError when one is running, here or on another machine."""
        with ExitStack() as locks:
            for query in (self.new, self.current):
                locks.enter_context(locked_checkpoints(query, self.settings))
            for status in read_statuses(self.settings, warn):
                if status.query in {self.new.name, self.current.name} and status.has_process:
                    msg = f"query {status.query} is {status.state} (its Spark driver is pid {status.pid} on {status.host}); stop it first"
                    raise StreamgaugeError(msg)
            yield

    def changes(self) -> Changes:
        """What the current topics lack of the new version's rows, and what they have beyond them."""
        new, current = cast("CompactedTopic", self.new.sink), cast("CompactedTopic", self.current.sink)
        found = {}
        for source, target in zip(new.topics, current.topics, strict=True):
            here, there = (read_table(self.settings, ends_of([topic], self.settings)) for topic in (source, target))
            written = {key: value for key, value in here.items() if there.get(key) != value}
            found[target.name] = {**written, **dict.fromkeys(there.keys() - here.keys())}
        return found

    def promote(self, changes: Changes) -> None:
        """Writes `changes`, then moves the checkpoint."""
        for topic, values in changes.items():
            write_rows(self.settings.kafka, topic, values)
        folder = self.new.checkpoint_name.folder(self.settings)
        others = [path for path in remains_of(self.new.name, self.settings) if path.suffix != ".lock" and path != folder]
        for path in map(str, (*others, folder)):
            Path(path).rename(path.replace(str(self.new.checkpoint_name), str(self.current.checkpoint_name)))
