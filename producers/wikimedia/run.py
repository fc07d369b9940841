"""One run of `streamgauge produce wikimedia`, from the source of changes to the summary."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from filelock import FileLock, Timeout

from contract.domains.wikimedia import WIKIMEDIA
from contract.errors import StreamgaugeError
from contract.kafka.cluster import KafkaCluster
from contract.kafka.recent_records import last_records
from contract.registry.client import SchemaRegistry
from contract.settings import Settings
from contract.terminal import err
from producers.delivery.events import Event, Idle
from producers.delivery.faults import Faults
from producers.delivery.resume import when_kafka_answers
from producers.delivery.run import Run, deliver
from producers.delivery.summary import Summary
from producers.wikimedia.avro import corrupt, encoder
from producers.wikimedia.changes import EVENT_ID, Arrival, Changes, Source
from producers.wikimedia.live import LiveStream, Patience
from producers.wikimedia.position import Position, RecentIds
from producers.wikimedia.recording import replay
from producers.wikimedia.simulation import Simulation, simulate

LOOK_BACK_RECORDS = 5000
"""Number of records read for ids from the end of each partition: far more than are sent between two saves of the position."""


@dataclass(frozen=True)
class Order:
    """What to send. stream: the URL of a live stream, the file of a recording, or a simulation. schema: the Avro schema as JSON.

    rate: events per second (None: as they arrive). limit: number of events before faults add to them (None: all).
    """

    stream: str | Path | Simulation
    schema: str
    faults: Faults
    rate: float | None = None
    limit: int | None = None


class WikimediaRun:
    """Executes an order."""

    def __init__(self, settings: Settings, order: Order) -> None:
        self.settings, self.order = settings, order
        self.changes: Changes | None = None
        self.position: Position | None = None

    def produce(self, *, as_json: bool) -> None:
        """Sends until the stream ends or a signal arrives, and prints the counts.

        Raises StreamgaugeError when Kafka, registry or stream fail permanently.
        """
        order = self.order
        with ExitStack() as while_it_runs:
            if isinstance(order.stream, str):
                while_it_runs.enter_context(_only_one(self._home))
                self.position = Position(self._home / "wikimedia-position.json", order.stream)
                while_it_runs.callback(self.position.save)
            is_finite = isinstance(order.stream, Path) or order.limit is not None
            told = self.position.acknowledged if self.position else None
            run = Run(
                self.settings.kafka,
                WIKIMEDIA.name,
                order.faults,
                corrupt,
                order.rate,
                order.limit,
                is_finite,
                acknowledged=told,
                is_simulated=isinstance(order.stream, Simulation),
            )
            deliver(run, self._events, "edits", "distinct changes of type edit", as_json=as_json, counted=self._with_skipped)

    def _with_skipped(self, summary: Summary) -> Summary:
        canaries, repeated = (self.changes.canaries, self.changes.repeated) if self.changes else (0, 0)
        more = {
            "canaries": (canaries, "skipped: artificial events of Wikimedia's monitoring"),
            "repeated": (repeated, "skipped: came again after a reconnect"),
        }
        return replace(summary, more=more)

    def _events(self, idle: Idle) -> Iterator[Event]:
        encode = encoder(SchemaRegistry(self.settings.registry), WIKIMEDIA.name, self.order.schema, err.print, idle)
        if encode is None:
            return
        self.changes = Changes(encode, _source(self.order.stream))
        if self.position is not None:
            self.changes.recent = RecentIds(when_kafka_answers(lambda: _ids_in_topic(self.settings.kafka), err.print))
            self.changes.needs_no_record = self.position.acknowledged
        yield from islice(self.changes.events(self._arrivals(idle)), self.order.limit)

    def _arrivals(self, idle: Idle) -> Iterator[Arrival]:
        stream = self.order.stream
        if isinstance(stream, Simulation):
            yield from map(Arrival, simulate(stream))
        elif isinstance(stream, Path):
            yield from map(Arrival, replay(stream, err.print))
        elif self.position is not None:
            last_event_id = self.position.last_event_id
            patience = Patience(silence=self.settings.wikimedia_silence_seconds)
            live = LiveStream(stream, self.settings.wikimedia_user_agent, last_event_id, err.print, patience)
            for message in live.messages(idle):
                yield Arrival(message.text, self.position.read(message.id))

    @property
    def _home(self) -> Path:
        return self.settings.home / "producers"


@contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    """Prevents a second producer of live changes, which would send everything twice."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / "wikimedia-live.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        msg = f"another producer of live changes is already running ({folder}), and two would send every change twice; stop that one, or choose another STREAMGAUGE_HOME"
        raise StreamgaugeError(msg) from error
    try:
        yield
    finally:
        lock.release()


def _source(stream: str | Path | Simulation) -> Source:
    if isinstance(stream, Simulation):
        return Source.SIMULATED
    return Source.RECORDED if isinstance(stream, Path) else Source.LIVE


def _ids_in_topic(kafka: KafkaCluster) -> list[str]:
    headers = (dict(message.headers() or []) for message in last_records(kafka, WIKIMEDIA.name, LOOK_BACK_RECORDS))
    return [event_id.decode() for one in headers if isinstance(event_id := one.get(EVENT_ID), bytes)]
