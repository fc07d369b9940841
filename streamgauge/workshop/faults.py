"""The faults of `streamgauge break`: each breaks a running demo, most of them its Nest part only."""

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import psutil

from contract.checkpoints.names import CheckpointPlace, checkpoints
from contract.domains.nest import NEST_CAMERA_STATS, NEST_CAMERA_STATUS, NEST_LOGS, CameraStats
from contract.errors import StreamgaugeError
from contract.kafka.result_table import read_to_end
from contract.kafka.tombstones import write_rows
from contract.query_status import read_statuses
from contract.rows import Row, json_decoder
from contract.settings import Settings
from contract.terminal import warn
from streamgauge.operations.topic_deletion import delete_topics
from streamgauge.platform.kafka import EmbeddedKafka
from streamgauge.workshop import grader

_RUBBISH = (b'{"devices": {"cameras": {"cam', b"\x00\x01\x02", b'{"thermostats": {}}')
_RECORDS = 600
STATS, STATUS = NEST_CAMERA_STATS.name, NEST_CAMERA_STATUS.name


@dataclass(frozen=True)
class Fault:
    """play: breaks the system. cause, signs, repair: sentences for those who have looked for it. processes: those that it has frozen, if any."""

    play: Callable[[Settings], None]
    cause: str
    signs: str
    repair: str
    processes: Callable[[Settings], list[psutil.Process]] = lambda _: []

    @property
    def told(self) -> str:
        """Three lines."""
        return f"cause: {self.cause}\nsigns: {self.signs}\nrepair: {self.repair}"


def drawn(seed: int | None) -> str:
    """The name of a fault: the same one for the same seed."""
    return random.Random(seed).choice(list(FAULTS))  # noqa: S311 - a game


def play(name: str, settings: Settings) -> None:
    """Breaks the system, and remembers how. Raises StreamgaugeError when that is not possible, or the last fault has not been repaired.

    It never breaks a Kafka of the user's own.
    """
    if settings.kafka_bootstrap_servers:
        msg = f"only the demo's own Kafka is broken on purpose, and KAFKA_BOOTSTRAP_SERVERS is {settings.kafka_bootstrap_servers}; unset it"
        raise StreamgaugeError(msg)
    if last := played(settings):
        msg = f"the fault of {last[1]:%H:%M} UTC is not repaired yet; `streamgauge workshop diagnose` goes on with it, and `--give-up` tells what it is"
        raise StreamgaugeError(msg)
    FAULTS[name].play(settings)
    file = _file(settings)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(orjson.dumps([name, datetime.now(UTC)]))


def played(settings: Settings) -> tuple[str, datetime] | None:
    """The name of the fault that was played here and not repaired since, and when."""
    file = _file(settings)
    if not file.exists():
        return None
    name, at = orjson.loads(file.read_bytes())
    return name, datetime.fromisoformat(at)


def forget(settings: Settings) -> None:
    """The fault is repaired."""
    _file(settings).unlink(missing_ok=True)


def remains(name: str, settings: Settings) -> Iterator[str]:
    """What is still to be repaired, in lines. Raises StreamgaugeError when Kafka cannot be reached."""
    from audit.commands import verdicts_of

    frozen = [process for process in FAULTS[name].processes(settings) if process.status() == psutil.STATUS_STOPPED]
    if frozen:
        yield f"process {frozen[0].pid} is still as it was left"
        return
    statuses = [status for status in read_statuses(settings, warn) if status.query in {STATS, STATUS}]
    if not statuses:
        yield "no query has run"
        return
    yield from (f"query {status.query} is {status.state}" for status in statuses if status.is_trouble)
    for verdict in verdicts_of([status.query for status in statuses], settings):
        if verdict.verdict != "right":
            yield f"verify: {verdict.query} is {verdict.verdict}, {verdict.rows.wrong} rows are wrong"


def _file(settings: Settings) -> Path:
    return grader.home(settings) / "fault.json"


def _freeze(processes: list[psutil.Process], what: str) -> None:
    if not processes:
        msg = f"no {what} runs with this STREAMGAUGE_HOME; start `streamgauge demo`"
        raise StreamgaugeError(msg)
    for process in processes:
        process.suspend()


def _producers(settings: Settings) -> list[psutil.Process]:
    return [process for process in psutil.process_iter() if _is_producer(process, settings)]


def _brokers(settings: Settings) -> list[psutil.Process]:
    broker = EmbeddedKafka(settings).pid_file.process()
    return [] if broker is None else [broker]


def _drivers(settings: Settings) -> list[psutil.Process]:
    place = _place(settings)
    return [] if place is None or place.driver is None else [place.driver]


def _place(settings: Settings) -> CheckpointPlace | None:
    return next((place for place in checkpoints(settings) if place.name.query == STATS), None)


def _freeze_the_producer(settings: Settings) -> None:
    _freeze(_producers(settings), "`streamgauge produce nest`")


def _freeze_kafka(settings: Settings) -> None:
    _freeze(_brokers(settings), "embedded Kafka")


def _freeze_the_pipeline(settings: Settings) -> None:
    _freeze(_drivers(settings), "pipeline")


def _is_producer(process: psutil.Process, settings: Settings) -> bool:
    try:
        if not re.search(r"streamgauge(\.cli)? produce nest", " ".join(process.cmdline())):
            return False
        home = Path(process.cwd(), process.environ().get("STREAMGAUGE_HOME", Settings().home))
    except psutil.Error:
        return False
    return home.resolve() == settings.home.resolve()


def _send(values: list[bytes], settings: Settings) -> None:
    each = (values[number % len(values)] for number in range(_RECORDS))
    write_rows(settings.kafka, NEST_LOGS.name, {b"%d" % number: value for number, value in enumerate(each)})


def _send_rubbish(settings: Settings) -> None:
    _send(list(_RUBBISH), settings)


def _send_from_the_future(settings: Settings) -> None:
    tomorrow = f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}"
    _send([orjson.dumps({"devices": {"cameras": {"cam-1": {"last_event": {"has_person": True, "start_time": tomorrow}}}}})], settings)


def _send_another_type(settings: Settings) -> None:
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    _send([orjson.dumps({"devices": {"cameras": {"cam-1": {"last_event": {"has_person": "yes", "start_time": now}}}}})], settings)


def _delete_counts(settings: Settings) -> None:
    write_rows(settings.kafka, STATS, dict.fromkeys(_keys_and_rows(settings)[0][::3]))


def _write_wrong_counts(settings: Settings) -> None:
    keys, rows = _keys_and_rows(settings)
    wrong = (orjson.dumps(row | {"count": row["count"] * 10}) for row in rows[::5])
    write_rows(settings.kafka, STATS, dict(zip(keys[::5], wrong, strict=True)))


def _keys_and_rows(settings: Settings) -> tuple[list[bytes], list[Row]]:
    table = read_to_end(settings.kafka, STATS, json_decoder(CameraStats))
    if not table.keys():
        msg = f"topic {STATS} has no rows yet; break the system when the Nest page shows some"
        raise StreamgaugeError(msg)
    return table.keys(), table.rows()


def _damage_the_checkpoint(settings: Settings) -> None:
    place = _place(settings)
    if place is None or not isinstance(place.folder, Path):
        msg = f"query {STATS} has no checkpoint on this machine yet; break the system when the Nest page shows rows"
        raise StreamgaugeError(msg)
    if place.driver is not None:
        place.driver.kill()
    newest = max((place.folder / "offsets").iterdir(), key=lambda file: int(file.name) if file.name.isdecimal() else -1)
    newest.write_text("")


def _delete_a_topic(settings: Settings) -> None:
    delete_topics(settings.kafka, [STATUS])


_RECOUNT = "Stop the demo, `streamgauge up`, `streamgauge reset nest-camera-stats`, `streamgauge down`, and start the demo: the query recounts from the source."
FAULTS = {
    "frozen-producer": Fault(
        _freeze_the_producer,
        "The Nest producer is stopped by SIGSTOP. It has not ended, so nothing restarts it.",
        "The Nest page goes stale, and `streamgauge status` shows idle queries without lag: the pipeline has read everything. After ten minutes an alert says that the source is silent. `ps` shows state T.",
        "`kill -CONT` the process, or `kill -9` it: the demo restarts it.",
        _producers,
    ),
    "frozen-pipeline": Fault(
        _freeze_the_pipeline,
        "The pipeline's JVM is stopped by SIGSTOP, as by a machine that swaps or a pause that does not end.",
        "All queries fall silent together within half a minute, those of other domains too, and their lag grows: events arrive, and nobody reads them. No log has an error.",
        "`kill -CONT` the process, or `kill -9` it: the demo restarts the pipeline. Then wait until the lag is gone.",
        _drivers,
    ),
    "frozen-kafka": Fault(
        _freeze_kafka,
        "The Kafka broker is stopped by SIGSTOP: its port is open, and nobody answers.",
        "Every command and page says that it cannot reach Kafka, and the logs of all parts say so as well. No process has ended.",
        "`kill -CONT` the process, or `kill -9` it: the demo restarts it. Producers and queries go on where they were, and nothing is lost.",
        _brokers,
    ),
    "foreign-records": Fault(
        _send_rubbish,
        "Another program has sent 600 records to nest-logs that are not documents.",
        "Dead letters rise on the Overview and Health pages. `streamgauge dead-letters` shows records that are no JSON, or have no devices.",
        "Nothing: the pipeline went on, no count is wrong, and every record is kept. Find the sender, and give it no WRITE on the topic.",
    ),
    "wrong-clock": Fault(
        _send_from_the_future,
        "The clock of a camera is a day ahead: it has reported 600 people who come tomorrow.",
        "Dead letters rise, and their reason is that start_time is in the future. The watermark has not moved: such an event would make all others too late.",
        "Nothing here: no count is wrong. Set the camera's clock, and `streamgauge dead-letters` has what it sent.",
    ),
    "changed-type": Fault(
        _send_another_type,
        'A camera with new software sends has_person as the text "yes", where true was agreed.',
        "Dead letters rise, and their reason is a field of another type; the rest of the document was used. The people that this camera sees count nowhere.",
        "Nothing here. Ask for the old type, or change the query to read both, under a new version (docs/upgrades.md).",
    ),
    "deleted-rows": Fault(
        _delete_counts,
        "A third of the rows in topic nest-camera-stats were deleted by tombstones.",
        "Bars are missing on the Nest page; all queries are running. `streamgauge verify nest-camera-stats` names the missing rows.",
        _RECOUNT,
    ),
    "changed-rows": Fault(
        _write_wrong_counts,
        "Another program wrote to topic nest-camera-stats: some counts are ten times too high.",
        "A few bars on the Nest page stand out; all queries are running. `streamgauge verify nest-camera-stats` names the wrong rows with both numbers.",
        f"{_RECOUNT} Then find out who may write to the topic (docs/security.md).",
    ),
    "damaged-checkpoint": Fault(
        _damage_the_checkpoint,
        "A file in the checkpoint of nest-camera-stats is empty, as after a power failure, and Spark was killed.",
        "The pipeline restarts. `streamgauge status` and the alerts say that nest-camera-stats was given up, and name the damaged file. The other queries go on.",
        f"{_RECOUNT} A copy of the checkpoint would do as well.",
    ),
    "deleted-topic": Fault(
        _delete_a_topic,
        "Topic nest-camera-status was deleted.",
        "For a minute only the lag of nest-camera-status grows: its Kafka client waits for the topic. Then the query fails four times in a row and is given up. `streamgauge status`, the alerts and `streamgauge doctor` name the topic.",
        "`streamgauge up` creates it. `streamgauge reset nest-camera-status`, while the demo is stopped, brings all rows back; starting the demo again also starts a query that was given up.",
    ),
}
