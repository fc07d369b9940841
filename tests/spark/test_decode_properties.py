"""Whatever bytes a source topic holds: each record counts or is a dead letter, and none stops the query.

The values are made by Hypothesis, whole and damaged ones, and decoded in one frame; they are the same in each run.
"""

import io
import json
import re
import struct
from collections import Counter
from decimal import Decimal
from functools import reduce

import fastavro
import psutil
from avro import V1, change, in_wire_format
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from plain import each_once

from pipeline.domains import nest, taxi, wikimedia
from pipeline.formats.confluent_avro import WriterSchemas

COUNT = 400
FUTURE = "10 minutes"
V1_PARSED = fastavro.parse_schema(json.loads(V1))
SCHEMAS = WriterSchemas(V1, {3: V1}, absent=frozenset({77}))
AMOUNTS = ("passenger_count", *taxi.MEASURES)
USED_IN_PART = ("; the rest was used", "; archived all the same")

odd_texts = st.sampled_from(["#1e9999999", "NaN", "x" * 300, "\ud800", "\x00", "a\u0301", "00:00:01", "-290308-12-22T00:00:00Z"])
odd_numbers = st.sampled_from([10**38, 10**400, 1e400, 1e-400, 10.1000000001, 2**63, *(f"#{text}" for text in ("1e2", "-0.0E-400"))])
nested = st.integers(2, 900).map(lambda levels: reduce(lambda inner, _: [inner], range(levels), 0))
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5) | odd_texts | odd_numbers | nested,
    lambda children: st.lists(children, max_size=2) | st.dictionaries(st.text(max_size=3), children, max_size=2),
    max_leaves=4,
)


def paths(value, path=()):
    """The path to each thing within a JSON value, and to itself."""
    yield path
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield from paths(inner, (*path, key))


def replaced(value, path, other):
    """`value` with `other` at the path."""
    return {**value, path[0]: replaced(value[path[0]], path[1:], other)} if path else other


@st.composite
def json_of(draw, whole):
    """JSON of such a value; one time in three something in it, or all of it, is anything else."""
    value = draw(whole)
    if draw(st.integers(1, 3)) == 2:
        value = replaced(value, draw(st.sampled_from(list(paths(value)))), draw(anything))
    # A text after # is a number as another program writes it; and halves of surrogate pairs as they are.
    text = json.dumps(value, ensure_ascii=draw(st.booleans()))
    return re.sub(r'"#([^"]*)"', r"\1", text).encode(errors="surrogatepass")


@st.composite
def damaged(draw, whole):
    """Every other value whole; in the others a byte is another one, or some are missing, or are there twice."""
    value = draw(whole)
    first, last = sorted((draw(st.integers(0, len(value))), draw(st.integers(0, len(value)))))
    return {
        "cut": value[:first],
        "changed": value[:first] + draw(st.binary(min_size=1, max_size=1)) + value[first + 1 :],
        "missing": value[:first] + value[last:],
        "twice": value[:last] + value[first:],
        "followed": value + draw(st.sampled_from([value, b"}", b"]", b",", b" // x", b"\x00", b"\n", b"  "])),
        "preceded": draw(st.sampled_from([b"\xef\xbb\xbf", b"\xff", b" ", b"["])) + value,
        "quoted": value.replace(b'"', b"'"),
    }.get(draw(st.sampled_from(["cut", "changed", "missing", "twice", "followed", "preceded", "quoted", *["whole"] * 7])), value)


times = st.sampled_from(
    [
        "2026-01-01T10:00:00.000Z",
        "2026-01-01T10:00:00+01:00",
        "2026-01-01T10:00:00Z",
        "yesterday",
        "0000",
        None,
        "00:00:01",
        "2017",
        "1969-12-31T23:59:59Z",
        "-290308-12-22T00:00:00Z",
    ]
)
cameras = st.fixed_dictionaries(
    {"last_event": st.fixed_dictionaries({"has_person": st.sampled_from([True, True, False]), "start_time": times})},
    optional={"device_id": st.text(max_size=3) | st.just("x" * 256), "is_online": st.booleans(), "activity_zones": st.just([])},
)
homes = st.dictionaries(st.text(max_size=2), cameras, min_size=1, max_size=3)
documents = json_of(st.fixed_dictionaries({"devices": st.fixed_dictionaries({"cameras": homes})}))

milliseconds = st.integers(-(10**12), 2 * 10**12) | st.sampled_from([2**53, 2**63, 1_700_000_000_000.5, "1700000000000"])
amounts = st.sampled_from([10.1, 0, -5, 1e9, 1e10, 1e300, 12.345, "12.5", 10.0, 10**30]) | st.sampled_from(
    ["#1e2", "#-1.05E+1", "#0E-8", "#12.5e-3", "#1e002", "#1.00000000000000001e2", "#12.50" + "0" * 40 + "1", "#1e-400", "#1e9999999"]
)
rides = {
    "lpep_pickup_datetime": milliseconds,
    "PULocationID": st.sampled_from([74, 9999, -1, 2**31, 2**40]),
    "passenger_count": st.integers(-(2**63), 2**63 - 1) | st.sampled_from(["#2.0", "#2e0", "#1.5e0", "#9007199254740993e0"]),
    **dict.fromkeys(taxi.MEASURES, amounts),
}
trips = json_of(st.fixed_dictionaries({"lpep_dropoff_datetime": milliseconds}, optional=rides))

longs = st.integers(-(2**63), 2**63 - 1)
changes = st.builds(
    lambda number, at, kind, length, schema_id, text: in_wire_format(
        change(number, at=at, kind=kind, length=length, title=text, wiki=text), schema_id
    ),
    number=st.integers(0, 5),
    at=st.just(1_767_225_600) | longs,
    kind=st.sampled_from(["edit", "edit", "edit", "log"]),
    length=st.none() | st.fixed_dictionaries({"old": st.none() | longs, "new": st.none() | longs}),
    schema_id=st.sampled_from([3, 3, 3, 77]),
    text=st.text(max_size=5),
)


def made(strategy):
    """Examples of it; and an empty value, and none."""
    found = [None, b""]

    @settings(max_examples=COUNT, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(strategy)
    def collect(value):
        found.append(value)

    collect()
    return found


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
    seen, reasons = offsets(nest.sightings(frame, FUTURE)), letters(nest.unusable(frame, FUTURE))
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
    stats = taxi.borough_stats(counting, taxi.ZONES.load(spark)).collect()
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
            nest.sightings(frame, FUTURE),
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
