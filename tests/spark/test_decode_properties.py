"""Whatever bytes a source topic holds: each record counts or is a dead letter, and none stops the query.

The values are made by Hypothesis, whole and damaged ones, and decoded in one frame; they are the same in each run.
"""

import io
import json
import struct
from collections import Counter
from decimal import Decimal

import fastavro
import psutil
from avro import V1
from odd_values import COUNT, changes, damaged, documents, made, trips
from plain import each_once

from infrastructure.settings import Settings
from pipeline.domains import nest, taxi, wikimedia
from pipeline.domains.nest_documents import sightings
from pipeline.formats.confluent_avro import WriterSchemas

FUTURE = "10 minutes"
V1_PARSED = fastavro.parse_schema(json.loads(V1))
SCHEMAS = WriterSchemas(V1, {3: V1}, absent=frozenset({77}), given_up=frozenset({77}))
AMOUNTS = ("passenger_count", *taxi.MEASURES)
USED_IN_PART = ("; the rest was used", "; archived all the same")


def letters(frame):
    """Offset -> reason."""
    rows = frame.selectExpr(
        "get_json_object(string(key), '$.offset') AS offset", "string(filter(headers, h -> h.key = 'reason')[0].value) AS reason"
    )
    return {int(row.offset): row.reason for row in rows.collect()}


def offsets(frame):
    return Counter(row.offset for row in frame.select("offset").collect())


def strict_value(value):
    """Whether a value is one JSON text, told without the code under test."""
    if (document := parsed(value)) is None:
        return False
    text = json.dumps(document, ensure_ascii=False)
    return not any("\ud800" <= character <= "\udfff" for character in text) and "\\u0000" not in text


def is_used(reason):
    return reason is None or reason.endswith(USED_IN_PART)


def parsed(value):
    """The JSON in a value; None for what Python cannot read, and for a name twice in an object."""
    try:
        return json.loads((value or b"").decode(), parse_constant=int, object_pairs_hook=each_once)
    except (ValueError, RecursionError):
        return None


def is_avro(value):
    """Whether another reader takes the value, by version 1 of the schema."""
    try:
        fastavro.schemaless_reader(io.BytesIO(value[5:]), V1_PARSED)
    except Exception:  # many types
        return False
    return True


def amounts_in(value):
    """The numbers in a JSON object, exactly."""
    document = json.loads(value, parse_int=Decimal, parse_float=Decimal, parse_constant=Decimal)
    return {name: number for name, number in document.items() if isinstance(number, Decimal)}


def people(document):
    """How many people a document without a dead letter reports, in plain Python."""
    found = document["devices"].get("cameras") or {}
    events = [(camera or {}).get("last_event") or {} for camera in found.values()]
    return sum(event.get("has_person") is True for event in events)


def test_each_person_in_a_nest_document_counts_or_the_document_is_a_dead_letter(records):
    values = made(damaged(documents))
    frame = records(*values)
    seen, reasons = offsets(sightings(frame, FUTURE)), letters(nest.unusable(frame, FUTURE))
    for offset, value in enumerate(values):
        reason = reasons.get(offset)
        assert not is_used(reason) or strict_value(value), f"{value!r} is not one JSON text, but used: {reason}"
        if not is_used(reason):
            assert seen[offset] == 0, f"{value!r} counts and is a dead letter: {reason}"
        elif reason is None and (document := parsed(value)) is not None:
            assert seen[offset] == people(document), f"{value!r} is no dead letter, so each person in it should count"
    assert sum(seen.values()) > COUNT / 20, "hardly a value could be used; the property would say little"


def test_each_taxi_record_is_a_trip_or_a_dead_letter(spark, records):
    values = made(damaged(trips))
    frame = records(*values, topic="nyc-taxi")
    counting = taxi.trips(frame, FUTURE)
    counted, reasons = offsets(counting), letters(taxi.unusable(frame, FUTURE))
    for offset, value in enumerate(values):
        assert not counted[offset] or strict_value(value), f"{value!r} is not one JSON text, but a trip"
        assert counted[offset] == is_used(reasons.get(offset)), (
            f"{value!r} is {counted[offset]} trips, and its dead letter: {reasons.get(offset)}"
        )
    for row in counting.select("offset", *AMOUNTS).collect():
        reason, told = reasons.get(row.offset), amounts_in(values[row.offset])
        kept = {name: row[name] for name in AMOUNTS if row[name] is not None}
        assert kept.items() <= told.items(), f"{values[row.offset]!r} has other amounts: {kept}"
        assert reason or kept.keys() == told.keys() & set(AMOUNTS), (
            f"{values[row.offset]!r} has more amounts than {kept}, and no dead letter"
        )
    stats = taxi.borough_stats(counting, taxi.ZONES.load(spark, Settings())).collect()
    assert sum(row.trips for row in stats) == len({values[offset] for offset in counted}) > COUNT / 20


BYTES, COPIES = 20_000, 5
MAX_TIMES_AS_MUCH = 10
HEAVY = (
    b'{"lpep_dropoff_datetime":1e99999999' + b"".join(b',"%b":1e99999999' % name.encode() for name in taxi.MEASURES) + b"}",
    b'{"lpep_dropoff_datetime":1' + b"".join(b',"%b":%b' % (name.encode(), b"9" * 1000) for name in taxi.MEASURES) + b"}",
    b'{"devices":{"thermostats":{"t":{"ambient_temperature_c":1e-99999999,"humidity":1e99999999}}}}',
    b'{"devices":{"cameras":{"c":{"last_event":{"has_person":true,"start_time":"-290308-12-22T00:00:00Z"}}}}}',
    b'{"devices":' * 900 + b"1" + b"}" * 900,
    b"[" * 900 + b"]" * 900,
    *(part * (BYTES // len(part)) for part in (b"[", b'{"a":', b'"', b"\\", b"1", b" ", b"\xff", b'{"a":1}', b":1e", b":1.1")),
    *(b'{"devices":"%b"}' % (part * (BYTES // len(part))) for part in (b"\\ud83d\\ude00", b"\\ud83d", b"\\\\", b":1e", b":1111111111")),
    b'{"devices":{"cameras":{%b}}}' % b",".join(b'"c":{"device_id":1}' for _ in range(BYTES // 20)),
    b'{"devices":{"cameras":{%b}}}' % b",".join(b'"%d":{"device_id":1}' % number for number in range(BYTES // 22)),
    b'{"devices":{"thermostats":{%b}}}' % b",".join(b'"t%d":{"humidity":1e1}' % number for number in range(BYTES // 25)),
    b'{"devices":{"cameras":{%b}}}' % b",".join(b'"c%d":"c"' % number for number in range(BYTES // 12)),
)
"""Values that a decoder may take long for."""


def test_no_record_takes_much_more_time_than_others_of_its_length(spark, records):
    java = psutil.Process(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())

    def cpu_seconds(values):
        frame = records(*(value.ljust(BYTES) for value in values)).crossJoin(spark.range(COPIES).withColumnRenamed("id", "copy"))
        before = sum(java.cpu_times()[:2])
        for decoded in (
            sightings(frame, FUTURE),
            nest.unusable(frame, FUTURE),
            taxi.trips(frame, FUTURE),
            taxi.unusable(frame, FUTURE),
        ):
            decoded.write.format("noop").mode("overwrite").save()
        return sum(java.cpu_times()[:2]) - before

    camera = {"last_event": {"has_person": True, "start_time": "2026-01-01T10:00:00Z"}, "where_name": "Hall", "zones": list(range(400))}
    document = json.dumps({"lpep_dropoff_datetime": 1, "devices": {"cameras": {f"c{number}": camera for number in range(8)}}})
    usual = [document.encode()] * len(HEAVY)
    assert BYTES / 2 < len(document) < BYTES
    cpu_seconds(usual[:1])  # compiles
    expected, found = cpu_seconds(usual), cpu_seconds(HEAVY)
    assert found < expected * MAX_TIMES_AS_MUCH, f"{found:.1f} s of CPU for what should take about {expected:.1f} s"


def test_each_wikimedia_record_is_a_change_or_a_dead_letter_and_each_edit_counts_or_is_one(records):
    values = made(damaged(changes))
    values = [value for value in values if value is None or value[:5] in {b"", struct.pack(">bI", 0, 3), struct.pack(">bI", 0, 77)}]
    frame = records(*values, topic="wikimedia")
    archive = {row.kafka_offset: row.type for row in wikimedia.changes(frame, SCHEMAS).select("kafka_offset", "type").collect()}
    counted, reasons = offsets(wikimedia.edits(frame, SCHEMAS, FUTURE)), letters(wikimedia.unusable(frame, SCHEMAS, FUTURE))
    for offset, value in enumerate(values):
        reason = reasons.get(offset)
        assert (offset in archive) == is_used(reason), f"{value!r} is archived: {offset in archive}, and its dead letter: {reason}"
        assert offset not in archive or is_avro(value), f"{value!r} is archived, and fastavro cannot read it"
        assert counted[offset] == (archive.get(offset) == "edit" and reason is None), (
            f"{value!r} counts {counted[offset]} times, and its dead letter: {reason}"
        )
    assert sum(counted.values()) > COUNT / 20
