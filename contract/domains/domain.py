"""What every room knows of a domain."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from contract.topics import Topic


@dataclass(frozen=True)
class Report:
    """What `streamgauge report` shows of a query's result topic.

    group: the columns of the key besides the window. counted: the column that --min-count bounds. is_avro: whether values are Avro in the
    Confluent wire format instead of JSON.
    """

    topic: Topic
    group: tuple[str, ...]
    counted: str
    is_avro: bool = False


@dataclass(frozen=True)
class Domain:
    """A domain by its `name`: that of `streamgauge produce <name>` and of its modules producers.<name>, pipeline.domains.<name> and dashboard.domains.<name>.

    title: of its page. reports: by query. demo: options of `streamgauge produce <name>` in the demo.
    """

    name: str
    title: str
    topics: tuple[Topic, ...]
    reports: Mapping[str, Report] = field(default_factory=dict)
    demo: tuple[str, ...] = ()

    @property
    def sources(self) -> tuple[Topic, ...]:
        """The topics that its producer writes."""
        return tuple(topic for topic in self.topics if topic.is_source)
