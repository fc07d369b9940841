"""The definition of a domain, as all packages see it."""

from dataclasses import dataclass

from contract.topics import Topic


@dataclass(frozen=True)
class Domain:
    """A domain. `name` also names `streamgauge produce <name>` and producers.<name>, pipeline.domains.<name> and dashboard.domains.<name>.

    Its queries are named `<name>-...`. title: title of its page. demo: options of `streamgauge produce <name>` in the demo.
    """

    name: str
    title: str
    topics: tuple[Topic, ...]
    demo: tuple[str, ...] = ()

    @property
    def sources(self) -> tuple[Topic, ...]:
        """The topics that the domain's producer writes."""
        return tuple(topic for topic in self.topics if topic.is_source)

    @property
    def results(self) -> tuple[Topic, ...]:
        """The topics that its queries write: its tables."""
        return tuple(topic for topic in self.topics if topic.is_result)

    def owns(self, query: str) -> bool:
        """Whether the query of that name is one of the domain's."""
        return query.startswith(f"{self.name}-")
