"""The schemas that the running queries read with: asked of the registry once, and again when a query meets an id that is not among them."""

from dataclasses import replace

from contract.registry.client import RegisteredSchema, SchemaRegistry
from pipeline.formats.confluent_avro import Subject, WriterSchemas


class SchemaBook:
    """What is known of each subject, for all queries. It is asked for by one thread."""

    def __init__(self, registry: SchemaRegistry) -> None:
        self._registry = registry
        self._known: dict[Subject, WriterSchemas] = {}

    def of(self, subject: Subject) -> WriterSchemas:
        """The schemas of `subject`, as of the last time that the registry was asked. Raises RegistryAway if it has to be asked and is away."""
        if subject not in self._known:
            versions = self._registry.versions(subject.name)
            self._known[subject] = WriterSchemas(subject.schema, _by_id(versions))
        return self._known[subject]

    def learn(self, subject: Subject, ids: frozenset[int]) -> None:
        """Sees to it that each of `ids` is known of the subject, or known to be absent; asks the registry if it must.

        An id of another subject is found too: values may be named by their record and not by their topic. Raises RegistryAway, and
        has learned nothing then.
        """
        known = self.of(subject)
        unknown = ids - known.by_id.keys() - known.absent
        if not unknown:
            return
        versions = self._registry.versions(subject.name)
        elsewhere = unknown - {version.id for version in versions}
        found = [schema for number in sorted(elsewhere) if (schema := self._registry.schema(number))]
        # The subject's own versions come last, as the newest of all decides what the reader's schema looks like.
        own = _by_id(versions)
        others = {**known.by_id, **_by_id(found)}
        by_id = {**{number: text for number, text in others.items() if number not in own}, **own}
        self._known[subject] = replace(known, by_id=by_id, absent=known.absent | (unknown - by_id.keys()))


def _by_id(schemas: list[RegisteredSchema]) -> dict[int, str]:
    return {schema.id: schema.text for schema in schemas}
