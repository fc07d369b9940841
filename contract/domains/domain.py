"""The definition of a domain, as all packages see it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from contract.topics import Topic


@dataclass(frozen=True)
class Report:
    """How `streamgauge report` shows a query's result topic.

    group: the key columns other than the window. counted: the column that --min-count filters. is_avro: whether values are Avro in the
    Confluent wire format; otherwise JSON.
    """

    topic: Topic
    group: tuple[str, ...]
    counted: str
    is_avro: bool = False


@dataclass(frozen=True)
class Domain:
    """A domain. `name` also names `streamgauge produce <name>` and producers.<name>, pipeline.domains.<name> and dashboard.domains.<name>.

    Its queries are named `<name>-...`. title: title of its page. reports: reports by query name. demo: options of `streamgauge produce <name>` in the demo.
    """

    name: str
    title: str
    topics: tuple[Topic, ...]
    reports: Mapping[str, Report] = field(default_factory=dict)
    demo: tuple[str, ...] = ()

    @property
    def sources(self) -> tuple[Topic, ...]:
        """The topics that the domain's producer writes."""
        return tuple(topic for topic in self.topics if topic.is_source)

    def owns(self, query: str) -> bool:
        """Whether the query of that name is one of the domain's."""
        return query.startswith(f"{self.name}-")
