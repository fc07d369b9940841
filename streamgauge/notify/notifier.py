"""Follows the topics with results that a person should know of, and sends an alert when an incident begins, gets worse or is over.

What has been told is in a file of STREAMGAUGE_HOME. An alert counts as told after it was taken: a kill between the two makes it come twice, and
loses none.
"""

import queue
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Protocol

from confluent_kafka import Message

from contract.domains.nest import NEST_CAMERA_ALERTS, NEST_CAMERA_STATUS, NEST_CROWDS, CameraAlert, CameraStatus, Crowd
from contract.query_status import decode_state
from contract.topics import ALERTS, QUERY_STATES, Alert
from infrastructure.durations import seconds
from infrastructure.kafka.follow import OpenReader, Warnings, follow, rows_left_out
from infrastructure.kafka.result_table import TableReader
from infrastructure.process.stop_signals import StopRequest
from infrastructure.rows import Row, decode_json, decoder
from infrastructure.settings import Settings
from infrastructure.text import utc_text
from infrastructure.web.outbox import Finished
from streamgauge.notify.incidents import ALARMS, CROWDS, STATUS, Incident, alarms, cameras, crowds, may_recount, watermark_of
from streamgauge.notify.told import Told

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
    """A way to a person: infrastructure.web.outbox.Outbox tells how it sends. name: what no other has."""

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
        self._kafka, self._ways, self._warnings = settings.kafka, ways, Warnings(warn)
        self._silence = timedelta(seconds=seconds(settings.offline_after, "STREAMGAUGE_OFFLINE_AFTER"))
        self._told = Told(settings.home.absolute() / "notify.json")
        self._watermarks = dict(self._told.watermarks)
        self._states: list[Row] = []
        self._finished: queue.SimpleQueue[tuple[str, Incident, bool] | None] = queue.SimpleQueue()
        self._sending: dict[str, set[str]] = {way.name: set() for way in ways}
        self._refusals: Counter[tuple[str, str, str | None]] = Counter()
        self._again_at: dict[tuple[str, str, str | None], float] = {}

    def follow(self, stop: StopRequest) -> None:
        """Follows Kafka until the stop is requested. While Kafka does not answer, it waits and tries again."""
        stop.wake = lambda: self._finished.put(None)
        readers: list[OpenReader] = [
            lambda: TableReader(self._kafka, QUERY_STATES.name, decode_state).opened(),
            lambda: TableReader(self._kafka, NEST_CAMERA_STATUS.name, decoder(CameraStatus)).opened(),
            lambda: TableReader(self._kafka, NEST_CAMERA_ALERTS.name, decoder(CameraAlert)).opened(),
            lambda: TableReader(self._kafka, NEST_CROWDS.name, decoder(Crowd)).opened(),
            lambda: _Alarms(self._kafka, ALERTS.name, decoder(Alert)).opened(),
        ]
        follow(readers, self._look, stop, self._warnings.add, partial(self._wait, stop))
        with ThreadPoolExecutor(len(self._ways)) as closing:
            closed = [closing.submit(way.close) for way in self._ways]
        for one in closed:
            one.result()
        while not self._finished.empty():
            self._note(self._finished.get())

    def _look(self, readers: Sequence[TableReader]) -> None:
        states, camera_states, camera_alerts, crowd_rows, alarm_rows = (reader.table.rows() for reader in readers)
        # These are of the last look: a watermark is written after the rows of its batch, which have come since.
        behind = may_recount(self._states, self._watermarks)
        self._learn_watermarks(self._states)
        self._states = [state for state in states if state["query"] in {STATUS, CROWDS, ALARMS}]
        behind |= may_recount(self._states, self._watermarks)
        alarms_by_key = dict(zip(readers[-1].table.keys(), alarm_rows, strict=True))
        incidents = [
            *cameras(camera_alerts, camera_states, self._watermarks.get(STATUS), self._silence),
            *crowds(crowd_rows, self._watermarks.get(CROWDS)),
            *alarms(alarms_by_key, self._watermarks.get(ALARMS)),
        ]
        self._warnings.tell(rows_left_out(readers) | self._recounting(behind))
        self._send_new([one._replace(level=None) if one.query in behind else one for one in incidents])

    def _learn_watermarks(self, states: Iterable[Row]) -> None:
        """Keeps the newest watermark of each query."""
        for state in states:
            if (watermark := watermark_of(state)) is not None:
                self._watermarks[state["query"]] = max(watermark, self._watermarks.get(state["query"], watermark))

    def _recounting(self, behind: Mapping[str, datetime | None]) -> set[str]:
        return {
            f"{query} recounts; alerts on it go on when its watermark is at {utc_text(self._watermarks[query])} again. If its source is a new one, stop notify and delete notify.json"
            for query, watermark in behind.items()
            if watermark is not None
        }

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
