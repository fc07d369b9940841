"""Follows the topics with results that a person should know of, and sends an alert when an incident begins, gets worse or is over.

What has been told is read from topic `alerts`, so a kill does not make it tell anything twice.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime

import orjson
from confluent_kafka import Message

from contract.domains.nest import NEST_CAMERA_ALERTS, NEST_CROWDS, CameraAlert, Crowd
from contract.errors import StreamgaugeError
from contract.kafka.cluster import KafkaCluster
from contract.kafka.result_table import ResultTable, TableReader, left_out
from contract.kafka.tombstones import write_rows
from contract.process.stop_signals import StopRequest
from contract.query_status import decode_state
from contract.rows import Row, checked, decode_json, decoder
from contract.settings import Settings
from contract.text import utc_text
from contract.topics import ALERTS, QUERY_STATES, Alert
from contract.web.webhook import Webhook
from streamgauge.notify.incidents import ALARMS, CROWDS, Incident, alarms, cameras, crowds

LOOK_SECONDS = 2
RETRY_SECONDS = 5
_BY = "notify"
"""Tells these alerts from those of the pipeline and of the audit."""


class _Alerts(TableReader):
    """Topic `alerts`. Its table has the rows of nest-alarms. told: the last level by name of each incident of which `notify` has sent an alert."""

    def __init__(self, kafka: KafkaCluster) -> None:
        super().__init__(kafka, ALERTS.name, decoder(Alert))
        self.told: dict[str, str] = {}

    def _apply(self, message: Message) -> None:
        with suppress(ValueError):  # of another program
            row = decode_json(message.value() or b"")
            if row.get("by") == _BY:
                self.told[str(row.get("incident"))] = checked(Alert, row)["level"]
            elif row.get("query") == ALARMS and decode_json(message.key() or b""):  # alerts on the query itself have another key
                super()._apply(message)


class Notifier:
    """Sends alerts on incidents.

    warn: gets a line when Kafka cannot be read, on rows that are left out because they cannot, and for each alert that does not reach the webhook.
    """

    def __init__(self, settings: Settings, warn: Callable[[str], None]) -> None:
        self._kafka, self._warn = settings.kafka, warn
        self._webhook = Webhook(settings.alert_webhook_url, warn)
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
        self._webhook.close()

    def _follow(self, stop: StopRequest) -> None:
        with ExitStack() as opened:

            def read(reader: TableReader) -> TableReader:
                opened.enter_context(reader.opened()).read_to_end()
                return reader

            states = read(TableReader(self._kafka, QUERY_STATES.name, decode_state))
            camera_alerts = read(TableReader(self._kafka, NEST_CAMERA_ALERTS.name, decoder(CameraAlert)))
            crowd_rows = read(TableReader(self._kafka, NEST_CROWDS.name, decoder(Crowd)))
            alerts = _Alerts(self._kafka)
            read(alerts)

            def incidents() -> Iterator[Incident]:
                yield from cameras(camera_alerts.table.rows())
                # A query that starts has no watermark yet, and then it is not known which of its rows are of incidents that are over.
                if CROWDS in self._watermarks:
                    yield from crowds(crowd_rows.table.rows(), self._watermarks[CROWDS])
                if ALARMS in self._watermarks:
                    by_key = dict(zip(alerts.table.keys(), alerts.table.rows(), strict=True))
                    yield from alarms(by_key, self._watermarks[ALARMS])

            while not stop.is_set():
                # These are of before: a watermark is written after the rows of its batch.
                self._learn_watermarks(states.table.rows())
                for reader in (states, camera_alerts, crowd_rows, alerts):
                    while reader.poll(0):
                        pass
                    reader.check()
                self._tell_left_out({NEST_CAMERA_ALERTS.name: camera_alerts.table, NEST_CROWDS.name: crowd_rows.table})
                for incident in incidents():
                    told = alerts.told.get(incident.name)
                    is_over = told == "resolved" and incident.query == CROWDS  # for ever: its hour is
                    if not is_over and incident.level != (told or "resolved"):
                        self._send(incident)
                        alerts.told[incident.name] = incident.level
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
        row = {
            "time": utc_text(datetime.now(UTC)),
            "level": incident.level,
            "query": incident.query,
            "what": incident.what,
            "detail": "",
            "by": _BY,
            "incident": incident.name,
        }
        write_rows(self._kafka, ALERTS.name, {incident.query.encode(): orjson.dumps(row)})
        self._webhook.send(row)  # last: what is in the topic is not told again
