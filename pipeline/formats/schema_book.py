"""The writer schemas that queries know: fetched from the registry, checked one by one, shared by all queries of a process."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from py4j.java_gateway import JavaPackage
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.avro.functions import from_avro

from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings
from pipeline.formats.avro_schemas import UnusableSchemaError, reader_schema, with_marker
from pipeline.formats.confluent_avro import IS_READ, MOST_UNKNOWN_IDS, Subject, WriterSchemas
from pipeline.spark.errors import SparkFailure, first_line

if TYPE_CHECKING:
    from infrastructure.registry.client import SchemaRegistry

AGAIN_SECONDS, MOST_SECONDS = 60, 600
"""The registry is asked again for an id that it did not have after the first number. The time doubles at each attempt, up to the second."""
MOST_TIMES = 3
"""How often a query restarts because it met an id that the registry did not have before."""
NEAR = 1_000_000
"""A registry gives ids in increasing order, so no schema will soon get an id that is further than this beyond the known ones."""


class SchemaBook:
    """The known writer schemas of each subject. Not thread-safe.

    Fetches them from the registry once, again when a query meets an unknown id, and from time to time while ids are absent: a registry that
    is restored from a copy, or replicated, may have a schema later than its values arrive.
    """

    def __init__(self, registry: "SchemaRegistry", clock: Callable[[], float] = time.monotonic) -> None:
        self._registry, self._clock = registry, clock
        self._by_subject: dict[Subject, WriterSchemas] = {}
        self._pauses: dict[Subject, tuple[float, float]] = {}  # when to ask again, and the seconds until the time after that
        self._times: Counter[tuple[Subject, int]] = Counter()  # how often an id was met that the registry did not have

    @classmethod
    def of_registry(cls, settings: Settings) -> Self:
        """A book of the registry in `settings`. Fetches nothing yet."""
        from infrastructure.registry.client import SchemaRegistry  # slow to import, and most queries read JSON

        return cls(SchemaRegistry(settings.registry))

    def of(self, subject: Subject) -> WriterSchemas:
        """The schemas of `subject` as last fetched. Raises RegistryUnavailable if they must be fetched and the registry cannot be reached."""
        if subject not in self._by_subject:
            self._by_subject[subject] = self._fetched(subject, WriterSchemas(subject.schema), (), {})
        return self._by_subject[subject]

    def forget(self, subject: Subject) -> None:
        """Ensures that the schemas of `subject` are fetched again."""
        self._by_subject.pop(subject, None)

    def doubt(self, subject: Subject, schemas: WriterSchemas, ids: Iterable[int]) -> None:
        """Ensures that `learn` asks for each of `ids` that a run with `schemas` failed to know, even if the registry did not have it before."""
        if self._by_subject.get(subject) is schemas:  # else, it has been asked since, for another query
            self._by_subject[subject] = replace(schemas, absent=schemas.absent.difference(ids))

    def learn(self, subject: Subject, ids: Iterable[int], ends: Mapping[int, int]) -> None:
        """Ensures that each of `ids` is known or a dead letter; queries the registry if necessary.

        ids: the most important first. ends: the end offset of each partition of the topic, read before this call.

        Finds ids of other subjects too, because subjects may be named after the record instead of the topic. Raises RegistryUnavailable, and then
        changes nothing.
        """
        current = self.of(subject)
        new = [number for number in dict.fromkeys(ids) if number not in current.by_id and number not in current.absent]
        if new and not current.is_full:
            fetched = self._fetched(subject, current, [*new, *current.absent], ends)
            self._times.update((subject, number) for number in new)
            furthest = max(fetched.by_id, default=0) + NEAR
            given_up = (number for number in fetched.absent if number > furthest or self._times[subject, number] >= MOST_TIMES)
            self._by_subject[subject] = replace(fetched, given_up=frozenset(given_up))
            self._pauses[subject] = (self._clock() + AGAIN_SECONDS, 2 * AGAIN_SECONDS)

    def is_outdated(self, subject: Subject, schemas: WriterSchemas) -> bool:
        """Whether values that were dead letters, because `schemas` lacked their schema, can be read now. Asks the registry when that is due."""
        with suppress(StreamgaugeError):  # the query continues, and asks again later
            self._ask_again(subject)
        current = self.of(subject)
        return bool(schemas.absent & current.by_id.keys()) or (schemas.is_full and not current.is_full)

    def _ask_again(self, subject: Subject) -> None:
        due, pause = self._pauses.get(subject, (0.0, 0.0))
        current = self._by_subject.get(subject)
        if current is None or not current.absent or self._clock() < due:
            return
        self._pauses[subject] = (self._clock() + pause, min(2 * pause, MOST_SECONDS))
        fetched = self._fetched(subject, current, sorted(current.absent), current.ends)
        self._by_subject[subject] = replace(fetched, given_up=current.given_up & fetched.absent)

    def _fetched(self, subject: Subject, before: WriterSchemas, ids: Iterable[int], ends: Mapping[int, int]) -> WriterSchemas:
        """The schemas of the subject, those of `before`, and those of the first MOST_UNKNOWN_IDS other `ids`."""
        registered = self._registry.versions(subject.name)
        unknown = [number for number in dict.fromkeys(ids) if number not in registered]
        asked = unknown[:MOST_UNKNOWN_IDS]
        fetched = {number: text for number in asked if (text := self._registry.schema(number))}
        other_schemas = {number: text for number, text in sorted({**before.by_id, **fetched}.items()) if number not in registered}
        # The subject's own versions decide: they are judged first, and come last, so that the newest one gives the types in the reader schema.
        by_id = {**other_schemas, **registered}
        unusable = _unusable(subject.schema, by_id, [*registered, *other_schemas])
        absent = frozenset(asked) - by_id.keys()
        return WriterSchemas(subject.schema, by_id, unusable, absent, ends, is_full=len(unknown) > len(asked))


def _unusable(project_schema: str, by_id: Mapping[int, str], order: Iterable[int]) -> dict[int, str]:
    """The schemas in `by_id` that cannot be read beside those before them in `order`: the reason by id."""
    if _problem(project_schema, by_id.values()) is None:
        return {}
    reasons: dict[int, str] = {}
    judged: set[int] = set()
    for number in order:
        judged.add(number)
        if reason := _problem(project_schema, [text for other, text in by_id.items() if other in judged and other not in reasons]):
            reasons[number] = reason
    return reasons


def _problem(project_schema: str, versions: Iterable[str]) -> str | None:
    """Why Spark cannot read values of all `versions`. None if it can."""
    spark, versions = SparkSession.active(), list(versions)
    try:
        reader = with_marker(reader_schema(versions, project_schema), IS_READ)
        _ = spark.range(0).select(from_avro(F.lit(None).cast("binary"), reader)).schema
        avro = spark.sparkContext._jvm.org.apache.avro  # type: ignore[union-attr]
        avro.Schema.Parser().parse(reader)  # unlike Spark, it checks the defaults
        for version in (project_schema, *versions):
            if not _reads(avro, reader, version) and _reads(avro, reader_schema([version], project_schema), version):
                return "a field of it has another type in another schema"
    except UnusableSchemaError as error:
        return str(error)
    except SparkFailure as error:
        return first_line(error)
    return None


def _reads(avro: JavaPackage, reader: str, writer: str) -> bool:
    """Whether Avro considers the two schemas compatible."""
    names = {name: json.loads(writer).get(name, "") for name in ("name", "namespace")}  # this check compares them, reading does not
    renamed = json.dumps({**json.loads(reader), **names})
    first, second = (avro.Schema.Parser().setValidateDefaults(False).parse(schema) for schema in (renamed, writer))
    return bool(avro.SchemaCompatibility.checkReaderWriterCompatibility(first, second).getType().name() == "COMPATIBLE")
