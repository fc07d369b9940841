"""The faults of `streamgauge break`: each breaks a running demo, most of them its Nest part only. To add one, declare it in FAULTS."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain, repeat

import orjson

from contract.domains.nest import NEST_CAMERA_STATS, NEST_CAMERA_STATUS, NEST_LOGS
from contract.domains.wikimedia import WIKIMEDIA
from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.recent_records import last_records
from infrastructure.kafka.record_clock import clock_header
from infrastructure.kafka.record_headers import headers_of
from infrastructure.kafka.writing import Sent
from infrastructure.rows import moment
from infrastructure.settings import Settings
from streamgauge.platform.kafka import EmbeddedKafka
from streamgauge.platform.registry import EmbeddedRegistry
from streamgauge.workshop.breakage import (
    Action,
    DeleteTopic,
    EmptyFile,
    Freeze,
    MoveArchive,
    Raw,
    Rewrite,
    Send,
    SetTopic,
    commands,
    embedded,
    pipelines,
    raw_rows,
)

_RUBBISH = (b'{"devices": {"cameras": {"cam', b"\x00\x01\x02", b'{"thermostats": {}}')
_RECORDS, _BURST = 600, 50_000
_UNKNOWN_SCHEMA = b"\x00\x7f\xff\xff\xf0no value of ours"
STATS, STATUS, ARCHIVE = "nest-camera-stats", "nest-camera-status", "nest-archive"


@dataclass(frozen=True)
class Fault:
    """action: breaks the system, and undoes that. cause, signs, repair: sentences for those who have looked for it.

    alert: words of the alert that it raises; empty if it raises none within a minute. queries: those that must run and be right again.
    """

    action: Action
    cause: str
    signs: str
    repair: str
    alert: str = ""
    queries: tuple[str, ...] = (STATS, STATUS)

    @property
    def told(self) -> str:
        """Three lines."""
        return f"cause: {self.cause}\nsigns: {self.signs}\nrepair: {self.repair}"


def _each_with_a_key(values: Iterator[bytes]) -> Iterator[Sent]:
    return (Sent(b"%d" % number, value) for number, value in zip(range(_RECORDS), values, strict=False))


def _document(**event: object) -> bytes:
    """A document of camera cam-1, whose last event is that."""
    return orjson.dumps({"devices": {"cameras": {"cam-1": {"device_id": "cam-1", "last_event": event}}}})


def _rubbish(_: Settings) -> Iterator[Sent]:
    return _each_with_a_key(chain.from_iterable(repeat(_RUBBISH)))


def _from_the_future(_: Settings) -> Iterator[Sent]:
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    return _each_with_a_key(repeat(_document(has_person=True, start_time=f"{tomorrow:%Y-%m-%dT%H:%M:%SZ}")))


def _of_another_type(_: Settings) -> Iterator[Sent]:
    return _each_with_a_key(repeat(_document(has_person="yes", start_time=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")))


def _of_a_month_ago(settings: Settings) -> Iterator[Sent]:
    newest = max((moment(orjson.loads(key)["window"]["start"]) for key in raw_rows(settings, NEST_CAMERA_STATS)), default=None)
    if newest is None:
        msg = f"topic {NEST_CAMERA_STATS.name} has no rows yet; break the system when the Nest page shows some"
        raise StreamgaugeError(msg)
    clock = (clock_header(round(newest.timestamp() * 1000)),)  # so that they are not from the future where a simulation is ahead
    for number in range(_RECORDS):
        time = newest - timedelta(days=30, seconds=number)
        yield Sent(b"%d" % number, _document(has_person=True, start_time=f"{time:%Y-%m-%dT%H:%M:%SZ}"), clock)


def _again(settings: Settings) -> Iterator[Sent]:
    records = last_records(settings.kafka, NEST_LOGS.name, _RECORDS // NEST_LOGS.partitions)
    return (Sent(record.key(), record.value(), headers_of(record)) for record in records)


def _burst(_: Settings) -> Iterator[Sent]:
    return repeat(Sent(b"one home", b'{"devices": {"cameras": {}}}'), _BURST)


def _of_an_unknown_schema(_: Settings) -> Iterator[Sent]:
    return _each_with_a_key(repeat(_UNKNOWN_SCHEMA))


def _a_third_deleted(rows: Raw) -> Mapping[bytes, None]:
    return dict.fromkeys(list(rows)[::3])


def _ten_times(rows: Raw) -> Mapping[bytes, bytes]:
    some = ((key, orjson.loads(rows[key])) for key in list(rows)[::5])
    return {key: orjson.dumps(row | {"count": row["count"] * 10}) for key, row in some}


def _of_nowhere(rows: Raw) -> Mapping[bytes, bytes]:
    """Rows of a zip code that no camera has."""
    some = ((orjson.loads(key), orjson.loads(rows[key])) for key in list(rows)[::5])
    nowhere = {"zip_code": "00000"}
    return {orjson.dumps(key | nowhere, option=orjson.OPT_SORT_KEYS): orjson.dumps(row | nowhere) for key, row in some}


def _in_another_format(rows: Raw) -> Mapping[bytes, bytes]:
    return {key: b"count=%d" % orjson.loads(rows[key])["count"] for key in list(rows)[::5]}


_RECOUNT = "Stop the demo, `streamgauge up`, `streamgauge reset nest-camera-stats`, `streamgauge down`, and start the demo: the query recounts from the source."
_WRONG = f"rows of topic {NEST_CAMERA_STATS.name} are wrong"
FAULTS: dict[str, Fault] = {
    "frozen-producer": Fault(
        Freeze("`streamgauge produce nest`", commands("produce nest")),
        "The Nest producer is stopped by SIGSTOP. It has not ended, so nothing restarts it.",
        "The Nest page goes stale, and `streamgauge status` shows idle queries without lag: the pipeline has read everything. After ten minutes an alert says that the source is silent. `ps` shows state T.",
        "`kill -CONT` the process, or `kill -9` it: the demo restarts it.",
    ),
    "frozen-pipeline": Fault(
        Freeze("pipeline", pipelines),
        "The pipeline's JVM is stopped by SIGSTOP, as by a machine that swaps or a pause that does not end.",
        "All queries fall silent together within half a minute, those of other domains too, and their lag grows: events arrive, and nobody reads them. No log has an error.",
        "`kill -CONT` the process, or `kill -9` it: the demo restarts the pipeline. Then wait until the lag is gone.",
    ),
    "frozen-kafka": Fault(
        Freeze("embedded Kafka", embedded(EmbeddedKafka)),
        "The Kafka broker is stopped by SIGSTOP: its port is open, and nobody answers.",
        "Every command and page says that it cannot reach Kafka, and the logs of all parts say so as well. No process has ended.",
        "`kill -CONT` the process, or `kill -9` it: the demo restarts it. Producers and queries go on where they were, and nothing is lost.",
    ),
    "foreign-records": Fault(
        Send(NEST_LOGS, _rubbish),
        f"Another program has sent 600 records to {NEST_LOGS.name} that are not documents.",
        "Dead letters rise on the Overview and Health pages. `streamgauge dead-letters` shows records that are not JSON or have no devices.",
        "Nothing: the pipeline went on, no count is wrong, and every record is kept. Find the sender, and give it no WRITE on the topic.",
    ),
    "wrong-clock": Fault(
        Send(NEST_LOGS, _from_the_future),
        "The clock of a camera is a day ahead: it has reported 600 people who come tomorrow.",
        "Dead letters rise, and their reason is that start_time is in the future. The watermark has not moved: such an event would make all others too late.",
        "Nothing here: no count is wrong. Set the camera's clock, and `streamgauge dead-letters` has what it sent.",
    ),
    "changed-type": Fault(
        Send(NEST_LOGS, _of_another_type),
        'A camera with new software sends has_person as the text "yes", where true was agreed.',
        "Dead letters rise, and their reason is a field of another type; the rest of the document was used. The people that this camera sees count nowhere.",
        "Nothing here. Ask for the old type, or change the query to read both, under a new version (docs/upgrades.md).",
    ),
    "deleted-rows": Fault(
        Rewrite(NEST_CAMERA_STATS, _a_third_deleted),
        f"A third of the rows in topic {NEST_CAMERA_STATS.name} were deleted by tombstones.",
        "Bars are missing on the Nest page; all queries are running. `streamgauge verify nest-camera-stats` names the missing rows.",
        _RECOUNT,
        alert=_WRONG,
    ),
    "changed-rows": Fault(
        Rewrite(NEST_CAMERA_STATS, _ten_times),
        f"Another program wrote to topic {NEST_CAMERA_STATS.name}: some counts are ten times too high.",
        "A few bars on the Nest page stand out; all queries are running. `streamgauge verify nest-camera-stats` names the wrong rows with both numbers.",
        f"{_RECOUNT} Then find out who may write to the topic (docs/security.md).",
        alert=_WRONG,
    ),
    "damaged-checkpoint": Fault(
        EmptyFile(STATS),
        "A file in the checkpoint of nest-camera-stats is empty, as after a power failure, and Spark was killed.",
        "The pipeline restarts. `streamgauge status` and the alerts say that nest-camera-stats was given up, and name the damaged file. The other queries continue.",
        f"{_RECOUNT} A copy of the checkpoint would do as well.",
        alert="given up",
    ),
    "deleted-topic": Fault(
        DeleteTopic(NEST_CAMERA_STATUS),
        f"Topic {NEST_CAMERA_STATUS.name} was deleted.",
        "For a minute only the lag of nest-camera-status grows: its Kafka client waits for the topic. Then the query fails four times in a row and is given up. `streamgauge status`, the alerts and `streamgauge doctor` name the topic.",
        "`streamgauge up` creates it. `streamgauge reset nest-camera-status`, while the demo is stopped, brings all rows back; starting the demo again also starts a query that was given up.",
        alert="given up",
    ),
    "frozen-registry": Fault(
        Freeze("embedded schema registry", embedded(EmbeddedRegistry)),
        "The schema registry is stopped by SIGSTOP: its port is open, and nobody answers.",
        "The pages stay right: what runs knows its schemas already. `streamgauge doctor` says that the registry does not answer, and what starts now waits for it. `ps` shows state T.",
        "`kill -CONT` the process, or `kill -9` it: the demo restarts it.",
    ),
    "frozen-audit": Fault(
        Freeze("`streamgauge audit`", commands("audit")),
        "The continuous audit is stopped by SIGSTOP: no table is checked.",
        "Everything runs, and all numbers are right. Only the age of the verdicts beside the tables grows, beyond the usual seconds.",
        "`kill -CONT` the process, or `kill -9` it: the demo restarts it. It continues where it stopped.",
    ),
    "late-records": Fault(
        Send(NEST_LOGS, _of_a_month_ago),
        "A camera that was offline for a month has sent 600 sightings from that month.",
        "`streamgauge status` shows 600 more rows of nest-camera-stats that came too late. No bar appears for those hours: the watermark has passed them. There are no dead letters.",
        "Nothing: no count is wrong by the rule that the watermark states, and `streamgauge verify` says how many came too late. With a longer STREAMGAUGE_WATERMARK they would count.",
    ),
    "repeated-records": Fault(
        Send(NEST_LOGS, _again),
        "A producer has sent its last 600 records again, as after a timeout without idempotence.",
        f"Topic {NEST_LOGS.name} and its archive grow, and the count of people does not: a sighting counts once, by device_id and start_time.",
        "Nothing: no count is wrong. Find the producer, and set enable.idempotence.",
    ),
    "burst": Fault(
        Send(NEST_LOGS, _burst),
        f"One home has sent {_BURST:,} documents at once, all with one key, and so into one partition.",
        "The lag of the Nest queries jumps, and `streamgauge status` names the one partition that has it. It falls within a minute or two. No bar grows: the documents have no camera.",
        "Nothing: the queries catch up, and no count is wrong. If bursts last longer, only other keys spread them over the partitions.",
    ),
    "unknown-schema": Fault(
        Send(WIKIMEDIA, _of_an_unknown_schema),
        f"A producer with another schema registry has sent {_RECORDS} records to topic {WIKIMEDIA.name}: our registry has no schema of their id.",
        "The Wikimedia queries restart once, to ask the registry for the schema. Then dead letters rise, with that id as their reason.",
        "Nothing: the pipeline went on, no count is wrong, and every record is kept. Register the schema, or correct the producer's registry; `streamgauge dead-letters replay` sends the records again.",
    ),
    "extra-rows": Fault(
        Rewrite(NEST_CAMERA_STATS, _of_nowhere),
        f"Another program has written rows to topic {NEST_CAMERA_STATS.name} for a zip code that has no camera.",
        "The Nest page shows zip code 00000; all queries are running. `streamgauge verify nest-camera-stats` names the extra rows.",
        f"{_RECOUNT} Or delete these rows by records with null values.",
        alert=_WRONG,
    ),
    "unreadable-rows": Fault(
        Rewrite(NEST_CAMERA_STATS, _in_another_format),
        f"Another program has written to topic {NEST_CAMERA_STATS.name} in a format of its own: some rows are no longer JSON.",
        "The Nest page leaves these rows out and says so; all queries are running. `streamgauge verify nest-camera-stats` names them, and what was found.",
        _RECOUNT,
        alert=_WRONG,
    ),
    "refused-records": Fault(
        SetTopic(NEST_LOGS, "max.message.bytes", "100"),
        f"Topic {NEST_LOGS.name} takes no record of more than 100 bytes (max.message.bytes): no document fits.",
        "The Nest page goes stale, and the queries are idle without lag. The demo says again and again that produce-nest has ended, and why. `streamgauge doctor` names the topic's setting.",
        "Set max.message.bytes of the topic to what doctor expects. The demo starts the producer again, after half a minute at most, and it continues where it stopped.",
    ),
    "refused-rows": Fault(
        SetTopic(NEST_CAMERA_STATS, "max.message.bytes", "100"),
        f"Topic {NEST_CAMERA_STATS.name} takes no record of more than 100 bytes (max.message.bytes): no row fits.",
        "Kafka's client splits what the topic refuses, again and again. Most often its thread, by which all queries write, dies of that (in spark.log, a StackOverflowError of kafka-producer-network-thread): the pipeline ends, says so, and is started again by the demo. At the latest after two minutes, nest-camera-stats restarts, with the topic's setting as its error and an alert, and the other queries go on.",
        "Delete the topic's setting max.message.bytes. nest-camera-stats continues automatically from its checkpoint; nothing is lost.",
        alert="waits for its result topic",
    ),
    "lost-archive": Fault(
        MoveArchive("nest/cameras"),
        "The folder lake/nest/cameras is gone, as if its disk were not mounted, and Spark was killed.",
        "The pipeline restarts. nest-archive is given up, because the archive lacks what the checkpoint says was written. The other queries continue.",
        "Rename lake/nest/cameras.away to cameras, and start the demo again. Without it, `streamgauge reset nest-archive` writes the archive anew.",
        alert="given up",
        queries=(ARCHIVE,),
    ),
}
