"""Kafka and counting in plain Python, independent of the pipeline: what the tests hold its results against."""

import csv
import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from infrastructure.kafka.writing import write_rows
from infrastructure.settings import Settings
from infrastructure.storage.data_files import data_file

ANSWER_SECONDS = 10
START = datetime(2026, 1, 1, tzinfo=UTC)


def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object_pairs_hook of json.loads: the object of these names and values. Raises ValueError for a name that is there twice."""
    if len(dict(pairs)) < len(pairs):
        msg = f"a name is there twice: {pairs}"
        raise ValueError(msg)
    return dict(pairs)


def read_topic(settings: Settings, topic: str) -> list[Message]:
    """Everything that is in `topic` now."""
    consumer = Consumer(
        {
            "bootstrap.servers": settings.bootstrap_servers,
            "group.id": str(uuid.uuid4()),
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
            "fetch.message.max.bytes": 16_000_000,
        }
    )
    try:
        ahead = set(consumer.list_topics(topic, ANSWER_SECONDS).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in ahead])
        messages: list[Message] = []
        while ahead:
            message = consumer.poll(ANSWER_SECONDS)
            assert message is not None, f"Kafka sent nothing of topic {topic} for {ANSWER_SECONDS} s"
            if message.error() is None:
                messages.append(message)
            elif message.error().code() == KafkaError._PARTITION_EOF:
                ahead.discard(message.partition())
            else:
                raise KafkaException(message.error())
        return messages
    finally:
        consumer.close()


def write_topic(
    settings: Settings,
    topic: str,
    values: Iterable[bytes | None],
    *,
    partitions: int | None = None,
    to: int | None = None,
    key: bytes | None = None,
    clock: Callable[[int], datetime] | None = None,
) -> None:
    """Sends `values`, each with `key`: without one, in the bursts to one partition and then another that librdkafka makes of them, or one after the other to `partitions`, or all `to` one.

    clock: the time of record 0, 1, 2 ... that a simulation states.
    """
    producer = Producer(
        {
            "bootstrap.servers": settings.bootstrap_servers,
            "message.max.bytes": 16_000_000,
            "queue.buffering.max.messages": 1_000_000,
            "linger.ms": 20,
            "delivery.report.only.error": True,
        }
    )
    refused: list[str] = []
    for number, value in enumerate(values):
        headers = None if clock is None else [("clock_ms", b"%d" % round(clock(number).timestamp() * 1000))]
        partition = to if to is not None else -1 if partitions is None else number % partitions
        producer.produce(topic, value, key, partition=partition, headers=headers, on_delivery=lambda error, _: refused.append(str(error)))
        producer.poll(0)
    assert producer.flush(60) == 0, f"Kafka at {settings.bootstrap_servers} did not take all records for {topic} in 60 s"
    assert not refused, f"Kafka refuses a record for {topic}: {refused[0]}"


def folded(settings: Settings, topic: str) -> dict[bytes, object]:
    """The last value of each key of a compacted topic."""
    table: dict[bytes, object] = {}
    for message in read_topic(settings, topic):
        table[message.key()] = orjson.loads(message.value()) if message.value() is not None else None
    return {key: value for key, value in table.items() if value is not None}


def sightings_of(value: bytes | None) -> set[tuple[str, str]]:
    """(device_id, start_time) of each person that a document reports; none for what is no document."""
    try:
        cameras = orjson.loads(value or b"")["devices"].get("cameras") or {}
    except (ValueError, KeyError, TypeError, AttributeError):
        return set()
    events = {camera["device_id"]: camera.get("last_event") or {} for camera in cameras.values()}
    return {(device, event["start_time"]) for device, event in events.items() if event.get("has_person")}


def counts_of(sightings: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """People per (zip_code, hour as the result topic writes it) of distinct sightings."""
    with data_file("device_locations.csv").open() as file:
        zip_codes = {row["device_id"]: row["zip_code"] for row in csv.DictReader(file)}
    instants = {(device, datetime.fromisoformat(time)) for device, time in sightings}
    return dict(Counter((zip_codes.get(device, "unknown"), f"{time:%Y-%m-%dT%H:00:00Z}") for device, time in instants))


def camera_changes(documents: Iterable[tuple[int, bool]], until_ms: int, silence_ms: int) -> list[tuple[bool, int]]:
    """(is online, since when) of each change of a camera, from the (time, is online) of its documents in any order, up to a watermark."""
    changes: list[tuple[bool, int]] = []
    before = None
    for time_ms, is_online in [*sorted(one for one in documents if one[0] <= until_ms), (until_ms + 1, None)]:
        if before is not None and before[1] and time_ms - before[0] > silence_ms:
            changes.append((False, before[0]))
        if is_online is not None and (not changes or changes[-1][0] != is_online):
            changes.append((is_online, time_ms))
        before = time_ms, is_online
    return changes


def sessions_of(times: Iterable[int], gap: int) -> list[tuple[int, int, int]]:
    """(first, last, how many) of each session of events at these times, in any order."""
    sessions: list[tuple[int, int, int]] = []
    for time in sorted(times):
        if sessions and time <= sessions[-1][1] + gap:
            first, _, number = sessions.pop()
            sessions.append((first, time, number + 1))
        else:
            sessions.append((time, time, 1))
    return sessions


def results(settings: Settings) -> dict[tuple[str, str], int]:
    """What topic nest-camera-stats holds, as `counts_of` gives it; checks that windows are an hour and keys canonical on the way."""
    table = {}
    for key, row in folded(settings, "nest-camera-stats").items():
        window = row["window"]
        assert key == orjson.dumps({"window": window, "zip_code": row["zip_code"]}, option=orjson.OPT_SORT_KEYS), (
            f"key {key!r} is not canonical for {row}"
        )
        assert datetime.fromisoformat(window["end"]) - datetime.fromisoformat(window["start"]) == timedelta(hours=1), row
        table[row["zip_code"], window["start"]] = row["count"]
    return table


def write_counts(settings: Settings, people: dict[int, int | None]) -> None:
    """Writes rows to topic nest-camera-stats as its query does: people by hour of 2026-01-01, of an unknown zip code; None deletes the row."""
    rows = {}
    for hour, count in people.items():
        start, end = (f"{START + timedelta(hours=number):%Y-%m-%dT%H:%M:%SZ}" for number in (hour, hour + 1))
        of = {"window": {"end": end, "start": start}, "zip_code": "unknown"}
        rows[orjson.dumps(of)] = None if count is None else orjson.dumps({**of, "count": count})
    write_rows(settings.kafka, "nest-camera-stats", rows)


def dropped(settings: Settings, query: str) -> int:
    """Rows that the query has reported as dropped because they came too late."""
    records = [orjson.loads(message.value()) for message in read_topic(settings, "streaming-metrics")]
    return sum(record["rows_dropped_by_watermark"] for record in records if record["event"] == "progress" and record["query"] == query)


def one_camera(device: str, start_time: datetime, **fields: object) -> bytes:
    """A document of one camera that sees a person."""
    event = {"has_person": True, "start_time": f"{start_time:%Y-%m-%dT%H:%M:%S}.000Z"}
    return orjson.dumps({"devices": {"cameras": {device: {"device_id": device, "last_event": event, **fields}}}})
