"""The writer schemas of running queries: fetched from the registry once, and again when a query meets an unknown id."""

from dataclasses import replace

from contract.registry.client import RegisteredSchema, SchemaRegistry
from pipeline.formats.confluent_avro import Subject, WriterSchemas


class SchemaBook:
    """The known schemas of each subject, shared by all queries. Not thread-safe."""

    def __init__(self, registry: SchemaRegistry) -> None:
        self._registry = registry
        self._known: dict[Subject, WriterSchemas] = {}

    def of(self, subject: Subject) -> WriterSchemas:
        """The schemas of `subject` as last fetched. Raises RegistryAway if they must be fetched and the registry cannot be reached."""
        if subject not in self._known:
            versions = self._registry.versions(subject.name)
            self._known[subject] = WriterSchemas(subject.schema, _by_id(versions))
        return self._known[subject]

    def learn(self, subject: Subject, ids: frozenset[int]) -> None:
        """Ensures that each of `ids` is known or absent; queries the registry if necessary.

        Finds ids of other subjects too, because subjects may be named after the record instead of the topic. Raises RegistryAway, and then
        changes nothing.
        """
        known = self.of(subject)
        unknown = ids - known.by_id.keys() - known.absent
        if not unknown:
            return
        versions = self._registry.versions(subject.name)
        elsewhere = unknown - {version.id for version in versions}
        found = [schema for number in sorted(elsewhere) if (schema := self._registry.schema(number))]
        # The subject's own versions come last: the newest schema decides the types in the reader schema.
        own = _by_id(versions)
        others = {**known.by_id, **_by_id(found)}
        by_id = {**{number: text for number, text in others.items() if number not in own}, **own}
        self._known[subject] = replace(known, by_id=by_id, absent=known.absent | (unknown - by_id.keys()))


def _by_id(schemas: list[RegisteredSchema]) -> dict[int, str]:
    return {schema.id: schema.text for schema in schemas}
