"""Follows the topics with results that a person should know of, and sends an alert when an incident begins, gets worse or is over.

A file in STREAMGAUGE_HOME has the alerts that were sent. An alert counts as sent once it was accepted: a kill in between repeats it, and loses
none.
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
from streamgauge.notify.sent_alerts import SentAlerts

AGAIN_SECONDS = 60
"""After this time, an alert that was not accepted is sent again. The time doubles with each attempt, up to MOST_SECONDS."""
MOST_SECONDS = 600
MAX_SENDING = 100


def pause_seconds(refusals: int) -> float:
    """How long an alert waits after so many refusals, at least one."""
    return min(AGAIN_SECONDS * 2 ** min(refusals - 1, 10), MOST_SECONDS)


class _Alarms(TableReader):
    """The rows of nest-alarms in topic `alerts`. Alerts on queries have no JSON in their keys."""

    def _apply(self, message: Message) -> None:
        with suppress(ValueError):
            if isinstance(decode_json(message.key() or b""), dict):
                super()._apply(message)


class Channel(Protocol):
    """A channel to a person, such as mail; infrastructure.web.outbox.Outbox describes how it sends. name: unique."""

    name: str

    def send(self, alert: Mapping[str, str], finished: Finished) -> None:
        """Sends one alert, a contract.topics.Alert."""

    def close(self) -> None:
        """Sends the pending alerts, for a few seconds."""


class Notifier:
    """Sends alerts on incidents, through all `channels`.

    warn: gets a line when Kafka cannot be read, on rows that are left out because they cannot, and on queries that recount.
    """

    def __init__(self, settings: Settings, channels: Sequence[Channel], warn: Callable[[str], None]) -> None:
        self._kafka, self._channels, self._warnings = settings.kafka, channels, Warnings(warn)
        self._silence = timedelta(seconds=seconds(settings.offline_after, "STREAMGAUGE_OFFLINE_AFTER"))
        self._sent = SentAlerts(settings.home.absolute() / "notify.json")
        self._watermarks = dict(self._sent.watermarks)
        self._states: list[Row] = []
        self._finished: queue.SimpleQueue[tuple[str, Incident, bool] | None] = queue.SimpleQueue()
        self._sending: dict[str, set[str]] = {channel.name: set() for channel in channels}
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
        with ThreadPoolExecutor(len(self._channels)) as closing:
            closed = [closing.submit(channel.close) for channel in self._channels]
        for future in closed:
            future.result()
        while not self._finished.empty():
            self._note(self._finished.get())

    def _look(self, readers: Sequence[TableReader]) -> None:
        states, camera_states, camera_alerts, crowd_rows, alarm_rows = (reader.table.rows() for reader in readers)
        # These are of the last look: a watermark is written after the rows of its batch, which have come since.
        recounting = may_recount(self._states, self._watermarks)
        self._learn_watermarks(self._states)
        self._states = [state for state in states if state["query"] in {STATUS, CROWDS, ALARMS}]
        recounting |= may_recount(self._states, self._watermarks)
        alarms_by_key = dict(zip(readers[-1].table.keys(), alarm_rows, strict=True))
        incidents = [
            *cameras(camera_alerts, camera_states, self._watermarks.get(STATUS), self._silence),
            *crowds(crowd_rows, self._watermarks.get(CROWDS)),
            *alarms(alarms_by_key, self._watermarks.get(ALARMS)),
        ]
        self._warnings.tell(rows_left_out(readers) | self._recount_warnings(recounting))
        self._send_new([incident._replace(level=None) if incident.query in recounting else incident for incident in incidents])

    def _learn_watermarks(self, states: Iterable[Row]) -> None:
        """Keeps the newest watermark of each query."""
        for state in states:
            if (watermark := watermark_of(state)) is not None:
                self._watermarks[state["query"]] = max(watermark, self._watermarks.get(state["query"], watermark))

    def _recount_warnings(self, recounting: Mapping[str, datetime | None]) -> set[str]:
        return {
            f"{query} recounts; alerts on it go on when its watermark is at {utc_text(self._watermarks[query])} again. If its source is a new one, stop notify and delete notify.json"
            for query, watermark in recounting.items()
            if watermark is not None
        }

    def _send_new(self, incidents: Sequence[Incident]) -> None:
        """Sends new incidents, at most MAX_SENDING at once through each channel."""
        self._sent.keep(incidents, self._watermarks)
        for channel in self._channels:
            sending = self._sending[channel.name]
            for incident in self._sent.new(channel.name, incidents):
                is_due = self._again_at.get((channel.name, incident.name, incident.level), 0) <= time.monotonic()
                if is_due and incident.name not in sending and len(sending) < MAX_SENDING:
                    sending.add(incident.name)
                    self._send(channel, incident)

    def _send(self, channel: Channel, incident: Incident) -> None:
        row = {"level": str(incident.level), "query": incident.query, "what": incident.what, "detail": "", "incident": incident.name}
        channel.send({"time": utc_text(datetime.now(UTC)), **row}, lambda is_taken: self._finished.put((channel.name, incident, is_taken)))

    def _note(self, finished: tuple[str, Incident, bool] | None) -> None:
        """Notes that a channel has finished with an incident."""
        if finished is None:
            return
        channel, incident, is_taken = finished
        self._sending[channel].discard(incident.name)
        key = channel, incident.name, incident.level
        if is_taken:
            self._sent.add(channel, incident)
            self._refusals.pop(key, None)
        else:
            self._refusals[key] += 1
            self._again_at[key] = time.monotonic() + pause_seconds(self._refusals[key])

    def _wait(self, stop: StopRequest, wait_seconds: float) -> None:
        """Notes what finishes meanwhile. Ends early with a stop."""
        until = time.monotonic() + wait_seconds
        while not stop.is_set() and (seconds_left := until - time.monotonic()) > 0:
            with suppress(queue.Empty):
                self._note(self._finished.get(timeout=seconds_left))
