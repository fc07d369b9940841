# /// script
# requires-python = ">=3.11,<3.13"
# dependencies = ["bytewax==0.21.1", "confluent-kafka==2.16.1", "orjson==3.13.0"]
# ///
"""The job of `nest-camera-stats` for Bytewax: people seen per zip code and hour, each sighting once.

Arguments: as those of NestStreams.java. Keys and values of the result are those of topic nest-camera-stats. A window holds its sightings, so
that each counts once. A snapshot a second is kept in the state folder, from which the dataflow goes on. One worker uses one core.
"""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import bytewax.operators as op
import orjson
from bytewax._bytewax import cli_main
from bytewax.connectors.kafka import KafkaSinkMessage
from bytewax.connectors.kafka import operators as kop
from bytewax.dataflow import Dataflow
from bytewax.operators.windowing import EventClock, TumblingWindower, WindowLogic, window
from bytewax.recovery import RecoveryConfig, init_db_dir

Sighting = tuple[str, tuple[str, datetime]]
HOUR, ALIGNED_TO = timedelta(hours=1), datetime(2020, 1, 1, tzinfo=UTC)


class Sightings(WindowLogic):
    """The sightings of a window, of which each new one makes a row."""

    def __init__(self, seen: frozenset[tuple[str, datetime]] | None) -> None:
        self.seen: set[tuple[str, datetime]] = set(seen or ())

    def on_value(self, value: tuple[str, datetime]) -> list[int]:
        before = len(self.seen)
        self.seen.add(value)
        return [len(self.seen)] if len(self.seen) > before else []

    def on_merge(self, original: "Sightings") -> list[int]:
        self.seen |= original.seen
        return []

    def on_close(self) -> list[int]:
        return []

    def snapshot(self) -> frozenset[tuple[str, datetime]]:
        return frozenset(self.seen)


def row(counted: tuple[str, tuple[int, int]]) -> KafkaSinkMessage:
    """A row of the result."""
    zip_code, (number, count) = counted
    start = ALIGNED_TO + number * HOUR
    hour = {name: f"{time:%Y-%m-%dT%H:%M:%SZ}" for name, time in (("end", start + HOUR), ("start", start))}
    value = {"zip_code": zip_code, "window": hour, "count": count}
    return KafkaSinkMessage(orjson.dumps({"window": hour, "zip_code": zip_code}), orjson.dumps(value))


def main() -> None:
    """Runs until it is ended."""
    kafka, source, result, state_folder, grace_seconds, locations = sys.argv[1:]
    zip_codes = dict(line.split(",")[:2] for line in Path(locations).read_text().splitlines()[1:])

    def read(message: KafkaSinkMessage) -> KafkaSinkMessage | list[Sighting]:
        """The document's sightings, by zip code; or the message itself if it is no document."""
        try:
            cameras = orjson.loads(message.value)["devices"].get("cameras") or {}
        except (ValueError, KeyError):
            return KafkaSinkMessage(None, message.value)
        seen = [(camera["device_id"], camera.get("last_event") or {}) for camera in cameras.values()]
        return [
            (zip_codes.get(device, "unknown"), (device, datetime.fromisoformat(event["start_time"])))
            for device, event in seen
            if event.get("has_person")
        ]

    flow, to = Dataflow(result), {"brokers": [kafka]}
    documents = op.map("read", kop.input("source", flow, topics=[source], **to).oks, read)
    split = op.branch("is-document", documents, lambda read: isinstance(read, list))
    kop.output("dead-letters", split.falses, topic=f"{result}-dead-letters", **to)
    clock = EventClock(lambda sighting: sighting[1], timedelta(seconds=float(grace_seconds)), to_system_utc=lambda _: None)
    hours = TumblingWindower(length=HOUR, align_to=ALIGNED_TO)
    counts = window("count", op.flatten("sightings", split.trues), clock, hours, Sightings, ordered=False)
    kop.output("result", op.map("row", counts.down, row), topic=result, **to)
    if not (folder := Path(state_folder)).exists():
        folder.mkdir(parents=True)
        init_db_dir(folder, 1)
    cli_main(flow, epoch_interval=timedelta(seconds=1), recovery_config=RecoveryConfig(folder))


if __name__ == "__main__":
    main()
