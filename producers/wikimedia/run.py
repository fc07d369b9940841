"""One run of `streamgauge produce wikimedia`, from the source of changes to the summary."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path

from confluent_kafka import Message

from contract.domains.wikimedia import WIKIMEDIA
from infrastructure.kafka.cluster import KafkaCluster
from infrastructure.kafka.recent_records import last_records
from infrastructure.kafka.record_headers import headers_of
from infrastructure.output.terminal import err
from infrastructure.process.locks import alone
from infrastructure.registry.client import SchemaRegistry
from infrastructure.settings import Settings
from producers.delivery.events import Event, Idle, Source
from producers.delivery.faults import Faults
from producers.delivery.resume import when_it_answers
from producers.delivery.run import Run, deliver
from producers.wikimedia.avro import corrupt, encoder
from producers.wikimedia.changes import EVENT_ID, Arrival, Changes
from producers.wikimedia.live import LiveStream, Patience
from producers.wikimedia.position import Position, RecentIds
from producers.wikimedia.server_sent_events import replay
from producers.wikimedia.simulation import Simulation, simulate

LOOK_BACK_RECORDS = 5000
"""Number of records read for ids from the end of each partition: far more than are sent between two saves of the position."""


def produce(
    settings: Settings,
    stream: str | Path | Simulation,
    schema: str,
    faults: Faults,
    rate: float | None,
    limit: int | None,
    *,
    json: bool,
) -> None:
    """Sends changes until the stream ends or a signal arrives, and prints the counts.

    stream: the URL of a live stream, the file of a recording, or a simulation. schema: the Avro schema as JSON.
    rate: events per second (None: as they arrive). limit: number of events before faults add to them (None: all).
    Raises StreamgaugeError when Kafka, registry or stream fail permanently.
    """
    registry = SchemaRegistry(settings.registry)
    encode = when_it_answers(lambda: encoder(registry, WIKIMEDIA.name, schema), err.print)
    with ExitStack() as while_it_runs:
        arrivals: Callable[[Idle], Iterable[Arrival]]
        if isinstance(stream, Simulation):
            source, arrivals = Source.SIMULATED, lambda _: map(Arrival, simulate(stream))
        elif isinstance(stream, Path):
            source, arrivals = Source.RECORDED, lambda _: (Arrival(one.text, type=one.type) for one in replay(stream))
        else:
            source, arrivals = Source.LIVE, while_it_runs.enter_context(_live(settings, stream))
        recent = RecentIds(when_it_answers(lambda: _ids_in_topic(settings.kafka), err.print)) if source is Source.LIVE else None
        changes = Changes(source, recent)

        def events(idle: Idle) -> Iterator[Event]:
            return islice(changes.events(arrivals(idle), encode), limit)

        run = Run(settings.kafka, WIKIMEDIA.name, "edits", "distinct changes of type edit", source, faults, corrupt, rate, limit)
        deliver(run, events, json=json, more_counts=lambda _: changes.skipped())


@contextmanager
def _live(settings: Settings, url: str) -> Iterator[Callable[[Idle], Iterable[Arrival]]]:
    """The arrivals of a live stream after the saved position, which is saved again at the end.

    Prevents a second producer of live changes, which would send everything twice.
    """
    folder = settings.home / "producers"
    refusal = f"another producer of live changes is already running ({folder}), and two would send every change twice; stop that one, or choose another STREAMGAUGE_HOME"
    with alone(folder / "wikimedia-live.lock", refusal):
        position = Position(folder / "wikimedia-position.json", url)
        patience = Patience(silence=settings.wikimedia_silence_seconds)

        def arrivals(idle: Idle) -> Iterator[Arrival]:
            live = LiveStream(url, settings.wikimedia_user_agent, position.last_event_id, err.print, patience)
            for message in live.messages(idle):
                yield Arrival(message.text, partial(position.acknowledged, position.read(message.id)), message.type)

        try:
            yield arrivals
        finally:
            position.save()


def _ids_in_topic(kafka: KafkaCluster) -> list[str]:
    return [one for one in last_records(kafka, WIKIMEDIA.name, LOOK_BACK_RECORDS, _event_id) if one is not None]


def _event_id(message: Message) -> str | None:
    found = dict(headers_of(message)).get(EVENT_ID)
    return found.decode() if isinstance(found, bytes) else None
