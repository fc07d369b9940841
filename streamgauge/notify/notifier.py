"""Follows the topics with results that a person should know of, and sends an alert when an incident begins, gets worse or is over.

What has been told is in a file of STREAMGAUGE_HOME, so a kill does not make it tell anything twice.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from typing import Protocol

from confluent_kafka import Message

from contract.domains.nest import NEST_CAMERA_ALERTS, NEST_CAMERA_STATUS, NEST_CROWDS, CameraAlert, CameraStatus, Crowd
from contract.errors import StreamgaugeError
from contract.kafka.result_table import ResultTable, TableReader, left_out
from contract.process.stop_signals import StopRequest
from contract.query_status import decode_state
from contract.rows import Row, decode_json, decoder
from contract.settings import Settings
from contract.text import utc_text
from contract.topics import ALERTS, QUERY_STATES, Alert
from streamgauge.notify.incidents import ALARMS, CROWDS, STATUS, Incident, alarms, cameras, crowds
from streamgauge.notify.told import Told

LOOK_SECONDS = 2
RETRY_SECONDS = 5


class _Alarms(TableReader):
    """The rows of nest-alarms in topic `alerts`. Alerts on queries have no JSON in their keys."""

    def _apply(self, message: Message) -> None:
        with suppress(ValueError):
            if isinstance(decode_json(message.key() or b""), dict):
                super()._apply(message)


class Way(Protocol):
    """A way to a person."""

    def send(self, alert: Mapping[str, str]) -> None:
        """Sends one alert, a contract.topics.Alert."""


class Notifier:
    """Sends alerts on incidents, in all `ways`.

    warn: gets a line when Kafka cannot be read, and on rows that are left out because they cannot.
    """

    def __init__(self, settings: Settings, ways: Sequence[Way], warn: Callable[[str], None]) -> None:
        self._kafka, self._ways, self._warn = settings.kafka, ways, warn
        self._told = Told(settings.home.absolute() / "notify.json")
        self._said = ""
        self._left_out: set[str] = set()
        self._watermarks: dict[str, datetime] = {}

    def follow(self, stop: StopRequest) -> None:
        """Follows Kafka until the stop is requested. While Kafka does not answer, it waits and tries again."""
        while not stop.is_set():
            try:
                self._follow(stop)
            except StreamgaugeError as error:
                if str(error) != self._said:
                    self._warn(str(error))
                self._said = str(error)
                stop.wait(RETRY_SECONDS)

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

            def incidents() -> list[Incident]:
                alarms_by_key = dict(zip(alarm_rows.table.keys(), alarm_rows.table.rows(), strict=True))
                return [
                    *cameras(camera_alerts.table.rows(), camera_states.table.rows(), self._watermarks.get(STATUS)),
                    *crowds(crowd_rows.table.rows(), self._watermarks.get(CROWDS)),
                    *alarms(alarms_by_key, self._watermarks.get(ALARMS)),
                ]

            while not stop.is_set():
                # These are of before: a watermark is written after the rows of its batch.
                self._learn_watermarks(queries.table.rows())
                for reader in (queries, *results.values()):
                    while reader.poll(0):
                        pass
                    reader.check()
                self._tell_left_out({topic: reader.table for topic, reader in results.items()})
                for incident in self._told.new(incidents()):
                    self._send(incident)
                self._said = ""
                stop.wait(LOOK_SECONDS)

    def _learn_watermarks(self, states: Iterable[Row]) -> None:
        """Keeps the latest watermark of each query: one that restarts has none for a while."""
        for state in states:
            if (watermark := state["progress"] and state["progress"]["watermark"]) is not None:
                self._watermarks[state["query"]] = max(watermark, self._watermarks.get(state["query"], watermark))

    def _tell_left_out(self, tables: Mapping[str, ResultTable]) -> None:
        found = {left_out(topic, table.unreadable) for topic, table in tables.items() if table.unreadable}
        for line in found - self._left_out:
            self._warn(line)
        self._left_out = found

    def _send(self, incident: Incident) -> None:
        now = utc_text(datetime.now(UTC))
        row = {"time": now, "level": str(incident.level), "query": incident.query, "what": incident.what, "detail": ""}
        for way in self._ways:
            way.send({**row, "incident": incident.name})
