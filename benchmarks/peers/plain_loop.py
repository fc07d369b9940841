"""The job of `nest-camera-stats` as a plain loop over a Kafka client, which is what one writes first.

Arguments: as those of NestStreams.java. The counts are in memory. Offsets are committed when Kafka has the rows that they led to.
"""

import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
from confluent_kafka import Consumer, Producer


def main() -> None:
    """Runs until it is ended."""
    kafka, source, result, _, _, locations = sys.argv[1:]
    zip_codes = dict(row.split(",")[:2] for row in Path(locations).read_text().splitlines()[1:])
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": result, "auto.offset.reset": "earliest", "enable.auto.commit": False})
    producer = Producer({"bootstrap.servers": kafka})
    seen: set[tuple[str, datetime]] = set()
    counts: Counter[tuple[str, datetime]] = Counter()
    consumer.subscribe([source])
    while True:
        changed = set()
        messages = [message for message in consumer.consume(1000, 0.1) if not message.error()]
        for message in messages:
            try:
                cameras = orjson.loads(message.value() or b"")["devices"].get("cameras") or {}
            except (ValueError, KeyError):
                producer.produce(f"{result}-dead-letters", message.value())
                continue
            for camera in cameras.values():
                event = camera.get("last_event") or {}
                if event.get("has_person"):
                    sighting = camera["device_id"], datetime.fromisoformat(event["start_time"]).astimezone(UTC)
                    if sighting not in seen:
                        seen.add(sighting)
                        group = zip_codes.get(sighting[0], "unknown"), sighting[1].replace(minute=0, second=0, microsecond=0)
                        counts[group] += 1
                        changed.add(group)
        for zip_code, start in changed:
            window = {name: f"{time:%Y-%m-%dT%H:%M:%SZ}" for name, time in (("end", start + timedelta(hours=1)), ("start", start))}
            row = {"zip_code": zip_code, "window": window, "count": counts[zip_code, start]}
            producer.produce(result, orjson.dumps(row), orjson.dumps({"window": window, "zip_code": zip_code}))
        producer.flush()
        if messages:
            consumer.commit(asynchronous=False)


if __name__ == "__main__":
    main()
