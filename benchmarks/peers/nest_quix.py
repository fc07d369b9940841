# /// script
# requires-python = ">=3.11"
# dependencies = ["quixstreams==3.28.1", "orjson==3.13.0"]
# ///
"""The job of `nest-camera-stats` for Quix Streams: people seen per zip code and hour, each sighting once.

Arguments: as those of NestStreams.java, without "at-once". Keys and values of the result are those of topic nest-camera-stats. A home's documents are on one
partition, so a repeated report is found where the first one was; only the count needs a repartition. All other settings
are the defaults, but for a commit a second, which makes results visible. One process uses one core.
"""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
from quixstreams import Application, State


def main() -> None:
    """Runs until it is ended."""
    kafka, source, result, state_folder, grace_seconds, locations, *options = sys.argv[1:]
    zip_codes = dict(row.split(",")[:2] for row in Path(locations).read_text().splitlines()[1:])
    application = Application(
        kafka,
        consumer_group=result,
        auto_offset_reset="earliest",
        state_dir=state_folder,
        commit_interval=1,
        processing_guarantee="exactly-once" if "exactly-once" in options else "at-least-once",
    )

    def sightings(document: dict[str, Any], seen: State) -> list[tuple[str, int]]:
        """Zip code and time (ms since 1970) of each sighting that is new."""
        found = []
        for camera in (document["devices"].get("cameras") or {}).values():
            event = camera.get("last_event") or {}
            if event.get("has_person"):
                time = round(datetime.fromisoformat(event["start_time"]).timestamp() * 1000)
                if not seen.exists(name := f"{camera['device_id']} {time}"):
                    seen.set(name, None)
                    found.append((zip_codes.get(camera["device_id"], "unknown"), time))
        return found

    documents = application.dataframe(application.topic(source, key_deserializer="bytes", value_deserializer="bytes")).apply(read)
    letters = application.topic(f"{result}-dead-letters", key_serializer="bytes", value_serializer="bytes")
    documents.filter(lambda document: isinstance(document, bytes)).to_topic(letters)
    frame = documents.filter(lambda document: isinstance(document, dict)).apply(sightings, stateful=True, expand=True)
    frame = frame.set_timestamp(lambda sighting, *_: sighting[1]).group_by(lambda sighting: sighting[0], name="zip_code")
    grace = timedelta(seconds=float(grace_seconds))
    counts = frame.tumbling_window(timedelta(hours=1), grace_ms=grace, on_late=lambda *_: False).count().current()
    results = application.topic(result, key_serializer="json", value_serializer="json")
    counts.apply(row, metadata=True).to_topic(results, key=lambda row: {"window": row["window"], "zip_code": row["zip_code"]})
    application.run()


def read(value: bytes) -> dict[str, Any] | bytes:
    """The document; or the bytes themselves if they are none."""
    try:
        document: dict[str, Any] = orjson.loads(value)
    except ValueError:
        return value
    return document if "devices" in document else value


def row(counted: dict[str, int], zip_code: str, *_: Any) -> dict[str, Any]:  # noqa: ANN401
    """A row of the result."""
    window = {name: f"{datetime.fromtimestamp(counted[name] / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}" for name in ("end", "start")}
    return {"zip_code": zip_code, "window": window, "count": counted["value"]}


if __name__ == "__main__":
    main()
