"""Shell completion of names: of queries, topics, faults and the parts that have logs."""

import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from contract.domains import TOPICS
from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings


def _queries() -> list[str]:
    """The queries that write a topic, and those with a checkpoint. Listing all would import Spark, which takes seconds."""
    from contract.checkpoints.names import checkpoints

    return [
        *dict.fromkeys(topic.query for topic in TOPICS if topic.is_result),
        *(place.name.query for place in checkpoints(Settings.from_environment())),
    ]


def _topics() -> list[str]:
    return [topic.name for topic in TOPICS]


def _results() -> list[str]:
    return [topic.plain_name for topic in TOPICS if topic.is_result]


def _parts() -> list[str]:
    from streamgauge.operations.logs import parts

    return list(parts(Settings.from_environment()))


def _faults() -> list[str]:
    from streamgauge.workshop.faults import FAULTS

    return list(FAULTS)


NAMES: dict[tuple[str, str], Callable[[], list[str]]] = {
    **{(command, "query"): _queries for command in ("run", "verify", "state", "reset")},
    **{(command, "topic"): _topics for command in ("records", "ingest", "export", "replay", "clean")},
    ("report", "table"): _results,
    ("why", "table"): _results,
    ("logs", "part"): _parts,
    ("break_", "fault"): _faults,
}
"""The possible values of a parameter, by its command and name."""


def complete_names(command: Callable[..., Any] | None) -> None:
    """Lets shells complete the parameters of a command that are in NAMES."""
    if command is not None:
        for name, parameter in inspect.signature(command).parameters.items():
            if names := NAMES.get((command.__name__, name)):
                for declared in parameter.annotation.__metadata__:
                    declared.autocompletion = _beginning(names)


def _beginning(names: Callable[[], list[str]]) -> Callable[[str], list[str]]:
    def completed(incomplete: str) -> list[str]:
        with suppress(StreamgaugeError, OSError):  # the command reports it
            return sorted({name for name in names() if name.startswith(incomplete)})
        return []

    return completed
