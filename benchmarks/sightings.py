"""The people count of Nest, written without Spark: what the benchmarks compare results with."""

from collections.abc import Iterable, Iterator
from datetime import datetime

import orjson
from confluent_kafka import Message

from infrastructure.storage.data_files import data_file

Group = tuple[str, str]
"""Zip code and start of the hour."""


def sightings(documents: Iterable[Message]) -> Iterator[tuple[int, Group]]:
    """Each sighting once: the Kafka timestamp (ms) of its first document, its zip code and hour. Written without Spark, to compare with."""
    with data_file("device_locations.csv").open() as file:
        zip_codes = dict(line.split(",")[:2] for line in file.read().splitlines()[1:])
    seen: set[tuple[str, datetime]] = set()
    for message in documents:
        for camera in (orjson.loads(message.value() or b"{}")["devices"].get("cameras") or {}).values():
            event = camera.get("last_event") or {}
            if not event.get("has_person"):
                continue
            start = datetime.fromisoformat(event["start_time"])  # not its text: one event is reported with milliseconds and without
            if (camera["device_id"], start) not in seen:
                seen.add((camera["device_id"], start))
                yield message.timestamp()[1], (zip_codes.get(camera["device_id"], "unknown"), f"{start:%Y-%m-%dT%H:00:00Z}")
