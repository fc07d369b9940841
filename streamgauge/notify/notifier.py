"""Follows the topics with results that a person should know of, and sends an alert when an incident begins, gets worse or is over.

What has been told is in a file of STREAMGAUGE_HOME. An alert counts as told after it was taken: a kill between the two makes it come twice, and
loses none.
"""

import queue
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from typing import Protocol

from confluent_kafka import Message

from contract.domains.nest import NEST_CAMERA_ALERTS, NEST_CAMERA_STATUS, NEST_CROWDS, CameraAlert, CameraStatus, Crowd
from contract.durations import seconds
from contract.errors import StreamgaugeError
from contract.kafka.result_table import ResultTable, TableReader, left_out
from contract.process.stop_signals import StopRequest
from contract.query_status import decode_state
from contract.rows import Row, decode_json, decoder
from contract.settings import Settings
from contract.text import utc_text
from contract.topics import ALERTS, QUERY_STATES, Alert
from contract.web.outbox import Finished
from streamgauge.notify.incidents import ALARMS, CROWDS, STATUS, Incident, alarms, cameras, crowds, may_recount, watermark_of
from streamgauge.notify.told import Told

LOOK_SECONDS = 2
RETRY_SECONDS = 5
AGAIN_SECONDS = 60
"""After which an alert is sent again that was not taken. Each time, it waits twice as long, up to MOST_SECONDS."""
MOST_SECONDS = 600
MAX_SENDING = 100


def pause_seconds(refusals: int) -> float:
    """How long an alert waits that was not taken so many times, at least once."""
    return min(AGAIN_SECONDS * 2 ** min(refusals - 1, 10), MOST_SECONDS)


class _Alarms(TableReader):
    """The rows of nest-alarms in topic `alerts`. Alerts on queries have no JSON in their keys."""

    def _apply(self, message: Message) -> None:
        with suppress(ValueError):
            if isinstance(decode_json(message.key() or b""), dict):
                super()._apply(message)


class Way(Protocol):
    """A way to a person: contract.web.outbox.Outbox tells how it sends. name: what no other has."""

    name: str

    def send(self, alert: Mapping[str, str], finished: Finished) -> None:
        """Sends one alert, a contract.topics.Alert."""

    def close(self) -> None:
        """Sends the pending alerts, for a few seconds."""


class Notifier:
    """Sends alerts on incidents, in all `ways`.

    warn: gets a line when Kafka cannot be read, on rows that are left out because they cannot, and on queries that recount.
    """

    def __init__(self, settings: Settings, ways: Sequence[Way], warn: Callable[[str], None]) -> None:
        self._kafka, self._ways, self._warn = settings.kafka, ways, warn
        self._silence = timedelta(seconds=seconds(settings.offline_after, "STREAMGAUGE_OFFLINE_AFTER"))
        self._told = Told(settings.home.absolute() / "notify.json")
        self._watermarks = dict(self._told.watermarks)
        self._said = ""
        self._warned: set[str] = set()
        self._finished: queue.SimpleQueue[tuple[str, Incident, bool] | None] = queue.SimpleQueue()
        self._sending: dict[str, set[str]] = {way.name: set() for way in ways}
        self._refusals: Counter[tuple[str, str, str | None]] = Counter()
        self._again_at: dict[tuple[str, str, str | None], float] = {}

    def follow(self, stop: StopRequest) -> None:
        """Follows Kafka until the stop is requested. While Kafka does not answer, it waits and tries again."""
        stop.wake = lambda: self._finished.put(None)
        while not stop.is_set():
            try:
                self._follow(stop)
            except StreamgaugeError as error:
                if str(error) != self._said:
                    self._warn(str(error))
                self._said = str(error)
                self._wait(stop, RETRY_SECONDS)
        with ThreadPoolExecutor(len(self._ways)) as closing:
            closed = [closing.submit(way.close) for way in self._ways]
        for one in closed:
            one.result()
        while not self._finished.empty():
            self._note(self._finished.get())

    def _follow(self, stop: StopRequest) -> None:
        with ExitStack() as opened:

            def read(reader: TableReader) -> TableReader:
                opened.enter_context(reader.opened()).read_to_end()
                return reader

            queries = read(TableReader(self._kafka, QUERY_STATES.name, decode_state))
            camera_states = read(TableReader(self._kafka, NEST_CAMERA_STATUS.name, decoder(CameraStatus)))
            camera_alerts = read(TableReader(self._kafka, NEST_CAMERA_ALERTS.name, decoder(CameraAlert)))
            crowd_rows = read(TableReader(self._kafka, NEST_CROWDS.name, decoder(Crowd)))
            alarm_rows = read(_Alarms(self._kafka, ALERTS.name, decoder(Alert)))
            topics = NEST_CAMERA_STATUS, NEST_CAMERA_ALERTS, NEST_CROWDS, ALERTS
            results = {
                topic.name: reader for topic, reader in zip(topics, (camera_states, camera_alerts, crowd_rows, alarm_rows), strict=True)
            }

            def states() -> list[Row]:
                return [state for state in queries.table.rows() if state["query"] in {STATUS, CROWDS, ALARMS}]

            def incidents() -> list[Incident]:
                alarms_by_key = dict(zip(alarm_rows.table.keys(), alarm_rows.table.rows(), strict=True))
                return [
                    *cameras(camera_alerts.table.rows(), camera_states.table.rows(), self._watermarks.get(STATUS), self._silence),
                    *crowds(crowd_rows.table.rows(), self._watermarks.get(CROWDS)),
                    *alarms(alarms_by_key, self._watermarks.get(ALARMS)),
                ]

            while not stop.is_set():
                # These are of before: a watermark is written after the rows of its batch.
                behind = may_recount(states(), self._watermarks)
                self._learn_watermarks(states())
                for reader in (queries, *results.values()):
                    while reader.poll(0):
                        pass
                    reader.check()
                behind |= may_recount(states(), self._watermarks)
                self._warn_once({topic: reader.table for topic, reader in results.items()}, behind)
                self._send_new([one._replace(level=None) if one.query in behind else one for one in incidents()])
                self._said = ""
                self._wait(stop, LOOK_SECONDS)

    def _learn_watermarks(self, states: Iterable[Row]) -> None:
        """Keeps the newest watermark of each query."""
        for state in states:
            if (watermark := watermark_of(state)) is not None:
                self._watermarks[state["query"]] = max(watermark, self._watermarks.get(state["query"], watermark))

    def _warn_once(self, tables: Mapping[str, ResultTable], behind: Mapping[str, datetime | None]) -> None:
        found = {left_out(topic, table.unreadable) for topic, table in tables.items() if table.unreadable}
        for query in (query for query, watermark in behind.items() if watermark is not None):
            found.add(
                f"{query} recounts; alerts on it go on when its watermark is at {utc_text(self._watermarks[query])} again. If its source is a new one, stop notify and delete notify.json"
            )
        for line in found - self._warned:
            self._warn(line)
        self._warned = found

    def _send_new(self, incidents: Sequence[Incident]) -> None:
        """Sends what is new, and no more at once than a way can take."""
        self._told.keep(incidents, self._watermarks)
        for way in self._ways:
            sending = self._sending[way.name]
            for incident in self._told.new(way.name, incidents):
                is_due = self._again_at.get((way.name, incident.name, incident.level), 0) <= time.monotonic()
                if is_due and incident.name not in sending and len(sending) < MAX_SENDING:
                    sending.add(incident.name)
                    self._send(way, incident)

    def _send(self, way: Way, incident: Incident) -> None:
        row = {"level": str(incident.level), "query": incident.query, "what": incident.what, "detail": "", "incident": incident.name}
        way.send({"time": utc_text(datetime.now(UTC)), **row}, lambda is_taken: self._finished.put((way.name, incident, is_taken)))

    def _note(self, finished: tuple[str, Incident, bool] | None) -> None:
        """Notes that a way has finished with an incident."""
        if finished is None:
            return
        way, incident, is_taken = finished
        self._sending[way].discard(incident.name)
        of = way, incident.name, incident.level
        if is_taken:
            self._told.add(way, incident)
            self._refusals.pop(of, None)
        else:
            self._refusals[of] += 1
            self._again_at[of] = time.monotonic() + pause_seconds(self._refusals[of])

    def _wait(self, stop: StopRequest, wait_seconds: float) -> None:
        """Notes what finishes meanwhile. Ends early with a stop."""
        until = time.monotonic() + wait_seconds
        while not stop.is_set() and (left := until - time.monotonic()) > 0:
            with suppress(queue.Empty):
                self._note(self._finished.get(timeout=left))
