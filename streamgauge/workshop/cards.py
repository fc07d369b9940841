"""Faults for workshop/run-it.md: each card breaks the Nest part of a running system, and the learner finds out what is wrong."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import orjson
import psutil

from contract.checkpoints.names import checkpoints
from contract.domains.nest import NEST_CAMERA_STATS, NEST_CAMERA_STATUS, NEST_LOGS, CameraStats
from contract.errors import StreamgaugeError
from contract.kafka.result_table import read_to_end
from contract.kafka.tombstones import write_rows
from contract.rows import Row, json_decoder
from contract.settings import Settings
from streamgauge.operations.topic_deletion import delete_topics

_RUBBISH = (b'{"devices": {"cameras": {"cam', b"\x00\x01\x02", b'{"thermostats": {}}')


@dataclass(frozen=True)
class Card:
    """A fault. play: breaks the system. cause, signs, repair: sentences for those who have looked for it."""

    play: Callable[[Settings], None]
    cause: str
    signs: str
    repair: str


def _freeze_the_producer(settings: Settings) -> None:
    producers = [process for process in psutil.process_iter() if _is_producer(process, settings)]
    if not producers:
        msg = "no `streamgauge produce nest` runs with this STREAMGAUGE_HOME; start `streamgauge demo`"
        raise StreamgaugeError(msg)
    for process in producers:
        process.suspend()


def _is_producer(process: psutil.Process, settings: Settings) -> bool:
    try:
        if "streamgauge.cli produce nest" not in " ".join(process.cmdline()):
            return False
        home = Path(process.cwd(), process.environ().get("STREAMGAUGE_HOME", Settings().home))
    except psutil.Error:
        return False
    return home.resolve() == settings.home.resolve()


def _send_rubbish(settings: Settings) -> None:
    write_rows(settings.kafka, NEST_LOGS.name, {b"%d" % number: value for number, value in enumerate(_RUBBISH * 200)})


def _delete_counts(settings: Settings) -> None:
    write_rows(settings.kafka, NEST_CAMERA_STATS.name, dict.fromkeys(_keys_and_rows(settings)[0][::3]))


def _write_wrong_counts(settings: Settings) -> None:
    keys, rows = _keys_and_rows(settings)
    wrong = (orjson.dumps(row | {"count": row["count"] * 10}) for row in rows[::5])
    write_rows(settings.kafka, NEST_CAMERA_STATS.name, dict(zip(keys[::5], wrong, strict=True)))


def _keys_and_rows(settings: Settings) -> tuple[list[bytes], list[Row]]:
    table = read_to_end(settings.kafka, NEST_CAMERA_STATS.name, json_decoder(CameraStats))
    if not table.keys():
        msg = f"topic {NEST_CAMERA_STATS.name} has no rows yet; play the card when the Nest page shows some"
        raise StreamgaugeError(msg)
    return table.keys(), table.rows()


def _damage_the_checkpoint(settings: Settings) -> None:
    place = next((place for place in checkpoints(settings) if place.name.query == "nest-camera-stats"), None)
    if place is None or not isinstance(place.folder, Path):
        msg = "query nest-camera-stats has no checkpoint on this machine yet; play the card when the Nest page shows rows"
        raise StreamgaugeError(msg)
    if place.driver is not None:
        place.driver.kill()
    newest = max((place.folder / "offsets").iterdir(), key=lambda file: int(file.name) if file.name.isdecimal() else -1)
    newest.write_text("")


def _delete_a_topic(settings: Settings) -> None:
    delete_topics(settings.kafka, [NEST_CAMERA_STATUS.name])


CARDS = {
    1: Card(
        _freeze_the_producer,
        "The Nest producer is stopped by SIGSTOP. It has not ended, so nothing restarts it.",
        "The Nest page goes stale, and `streamgauge status` shows idle queries without lag: the pipeline has read everything. After ten minutes an alert says that the source is silent. `ps` shows state T.",
        "`kill -CONT` the process, or `kill -9` it: the demo restarts it.",
    ),
    2: Card(
        _send_rubbish,
        "Another program has sent 600 records to nest-logs that are not documents.",
        "Dead letters rise on the Overview and Health pages. `streamgauge dead-letters` shows the records with their reasons.",
        "Nothing: the pipeline went on, no count is wrong, and every record is kept. Find the sender, and give it no WRITE on the topic.",
    ),
    3: Card(
        _delete_counts,
        "A third of the rows in topic nest-camera-stats were deleted by tombstones.",
        "Bars are missing on the Nest page; all queries are running. `streamgauge verify nest-camera-stats` names the missing rows.",
        "Stop the demo, `streamgauge up`, `streamgauge reset nest-camera-stats`, `streamgauge down`, and start the demo: the query recounts from the source.",
    ),
    4: Card(
        _write_wrong_counts,
        "Another program wrote to topic nest-camera-stats: some counts are ten times too high.",
        "A few bars on the Nest page stand out; all queries are running. `streamgauge verify nest-camera-stats` names the wrong rows with both numbers.",
        "As for missing rows: reset the query, which recounts. Then find out who may write to the topic (docs/security.md).",
    ),
    5: Card(
        _damage_the_checkpoint,
        "A file in the checkpoint of nest-camera-stats is empty, as after a power failure, and Spark was killed.",
        "The pipeline restarts. `streamgauge status` and the alerts say that nest-camera-stats was given up, and name the damaged file. The other queries go on.",
        "Stop the demo, `streamgauge up`, `streamgauge reset nest-camera-stats`, `streamgauge down`, and start the demo. A copy of the checkpoint would do as well.",
    ),
    6: Card(
        _delete_a_topic,
        "Topic nest-camera-status was deleted.",
        "For a minute only the lag of nest-camera-status grows: its Kafka client waits for the topic. Then the query fails four times in a row and is given up. `streamgauge status`, the alerts and `streamgauge doctor` name the topic.",
        "`streamgauge up` creates it. Then stop the demo and start it again: that also starts a query that was given up. The cameras' rows return when their state changes; `streamgauge reset nest-camera-status` brings all back.",
    ),
}
