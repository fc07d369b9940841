"""Two implementations that share nothing read the same from every value: the pipeline in Spark, and the audit in DuckDB and Python.

Where they differ, a test says so, and who is right by docs/values.md.
"""

import json
from collections import Counter
from dataclasses import replace
from decimal import Decimal

import mutations
import pyarrow as pa
import pytest
from auditing import compared_rows, facts_of, loaded, read_range, result
from auditing import records as records_of
from avro import V1, change, in_wire_format, with_field
from letters import reasons as told
from messages import refused
from odd_values import changes, damaged, documents, made, trips

from audit.checks.archive import Files, rows_of
from audit.checks.dead_letters import expected_letters
from audit.domains.wikimedia import archived, reader_of
from audit.recount.recount import Recount
from audit.values.documents import AvroValues
from infrastructure.settings import Settings
from pipeline.domains import nest, nest_devices, nest_documents, nest_status, taxi, wikimedia
from pipeline.formats.confluent_avro import WriterSchemas
from pipeline.formats.schema_book import SchemaBook

FUTURE = "10 minutes"
"""Noon of 2026-01-01 is the clock of every record, as in fixture `records`."""
NOON_MS = 1_767_268_800_000
AT = NOON_MS // 1000 - 7200
MUTATED, SEED = 300, 1
"""How many values of `mutations`, and which."""
SCHEMAS = WriterSchemas(V1, {3: V1}, absent=frozenset({77}), given_up=frozenset({77}))
CAMERA = '{"devices":{"cameras":{"c":{"device_id":%s,"last_event":{"has_person":%s,"start_time":%s}}}}}'
THERMOSTAT = '{"devices":{"thermostats":{"t":{"structure_id":%s,"last_connection":"2026-01-01T10:00:00Z","ambient_temperature_c":%s}}}}'
AT_10, AT_11 = (f'{{"last_event":{{"has_person":true,"start_time":"2026-01-01T{hour}:00:00Z"}}}}' for hour in (10, 11))
TIMES = [
    "2025-01-31T10:00:00.000Z",
    "2025-01-31T10:00:00+01:00",
    "2025-01-31T10:00:00.123456789Z",
    "2025-01-31T24:00:00Z",
    "2025-01-31T10:00:60Z",
    "2025-02-29T10:00:00Z",
    "2024-02-29T10:00:00Z",
    "1970-01-01T00:00:00+01:00",
    "1969-12-31T23:59:59-01:00",
    "1970-01-01T00:00:00Z",
    "2025-01-31T10:00:00+18:00",
    "2025-01-31T10:00:00+18:01",
    "2025-01-31T10:00:00+19:00",
    "2025-01-31T10:00:00+00:60",
    "2025-01-31T10:00:00.Z",
    "2025-01-31T10:00Z",
    "2025-01-31T10:00:00z",
    "2025-1-31T10:00:00Z",
    "2025-01-31T10:00:00+0100",
    "2025-01-31T10:00:00UTC",
    "\uff12\uff10\uff12\uff15-01-31T10:00:00Z",
    "2025-13-01T10:00:00Z",
    "2025-01-31T25:00:00Z",
    "0001-01-01T00:00:00Z",
    "2026-01-01T12:10:00Z",
    "2026-01-01T12:10:00.000001Z",
    "2025-01-31T10:00:00-00:00",
]
NUMBERS = f"""
    0 -0 1 1.0 1.5 12.345 12.50 12.500000000000000000000 1e2 1E-2 0.01 0.001 9999999999.99 10000000000 10000000000.00 9223372036854775807
    9223372036854775808 -9223372036854775808 -9223372036854775809 9223372036854775807.0 1.{"0" * 37} 1.{"0" * 38} 12.340000000000000001
    0.30000000000000004 1e16 10000000000000000.0 "5" null true [1] {{}} "" 1e300 1e400 -0.0 5e-324 999.99 1000 -999.99 1767225600000
""".split()
TOKENS = [
    *(
        *NUMBERS,
        "1e12",
        "-1e400",
        "12345678.9",
        "0.0001",
        "2e-3",
        "1e22",
        "1e23",
        "1000000000000000000.0",
        "12345678901234567.0",
        "9" * 40,
        "9" * 400,
    ),
    *('{"b":1.50,"a":{"c":"é\\u00e9\\u001f\\u007f\\/\\n😀\\\\u001f"},"d":[1e12,null,-0,12.340000000000000001]}', r'"{\"name\":1}"'),
]
"""What a text field may hold."""
DOCUMENTS = [
    *(CAMERA % (device, person, '"2026-01-01T10:00:00Z"') for device in ('"a"', "5", "null", '""', "[1]", '"é😀"') for person in ("true", '"true"', "1", "null")),
    *(CAMERA % ('"a"', "true", f'"{time}"') for time in [*TIMES, "2025-01-31 10:00:00", "2025-01-31T10:00:00Z "]),
    *(CAMERA % ('"a"', "true", other) for other in ("20250131", "null", "[]")),
    *(THERMOSTAT % (structure, number) for structure in ('"s"', "null") for number in NUMBERS),
    f'{{"devices":{{"cameras":{{"c":{AT_10},"c":{AT_11}}}}}}}',
    f'{{"devices":{{"cameras":{{"c":{AT_10}}}}},"devices":{{"cameras":{{"d":{AT_11}}}}}}}',
    f'{{"devices":{{"cameras":{{"c":{AT_10}}},"cameras":null}}}}',
    f'{{"devices":{{"cameras":{{"c":null,"d":3,"e":"x","f":[],"g":{AT_10}}}}}}}',
    f'{{"devices":{{"cameras":[{AT_10}]}}}}',
    f'{{"devices":{{"cameras":{{"{"n" * 255}":{AT_10},"{"n" * 256}":{AT_11}}}}}}}',
    f'{{"devices":{{"cameras":{{"x.y":{AT_10},"$":{AT_10},"*":{AT_10},"":{AT_10}}}}}}}',
    f'{{"dev\\u0069ces":{{"cameras":{{"c":{AT_10},"\\u0063":{AT_11}}}}}}}',
    f'{{"Devices":{{"cameras":{{"c":{AT_10}}}}}}}',
    *(
        f'{{"devices":{{"cameras":{{"c":{{"name":{token}{other}}}}},"thermostats":{{"t":{{"name_long":{token}}}}}}}}}'
        for token in TOKENS
        for other in ("", ',"is_online":3')
    ),
    *(f'{{"devices":{{"thermostats":{json.dumps(other)}}}}}' for other in ('{"t":{"device_id":"x"}}', {"t": ' {"device_id":"x"}'})),
    *("[]", "3", "null", '"x"', "{}", '{"devices":{}}', '{"devices":null}', '1,"end":"me"}', "1 2"),
    *(f'{{"devices":{{"cameras":{{"c":{AT_10}}}}},"x":{other}}}' for other in ("9" * 1000, "9" * 1001, "NaN", '"\\u0000"', '"\\ud83d\\ude00"', '"\\ud83d"')),
    *(f'{{"devices":{{"cameras":{{"c":{AT_10}}}}},"x":{"[" * levels}{"]" * levels}}}' for levels in (998, 999)),
    *(f'{{"devices":{{"cameras":{{"c":{AT_10}}}}},"{"n" * length}":1}}' for length in (50_000, 50_001)),
]  # fmt: skip
TRIPS = [
    *(f'{{"lpep_dropoff_datetime":1767225600000,"{name}":{number}}}' for name in ("fare_amount", "PULocationID", "passenger_count") for number in NUMBERS),
    *(f'{{"lpep_dropoff_datetime":{number}}}' for number in [*NUMBERS, -1, NOON_MS + 600_000, NOON_MS + 600_001]),
    *(f'{{"lpep_dropoff_datetime":1767225600000,"store_and_fwd_flag":{token}}}' for token in TOKENS),
    *(f'{{"lpep_dropoff_datetime":1767225600000,"lpep_dropoff_datetime":{other}}}' for other in ("1767225600001", "null")),
]  # fmt: skip


def of_nest():
    return [
        *made(damaged(documents)),
        *mutations.of_json(mutations.DOCUMENTS, MUTATED, SEED),
        *(text.encode() for text in DOCUMENTS),
    ]


def of_taxi():
    return [*made(damaged(trips)), *mutations.of_json([mutations.TRIP], MUTATED, SEED), *(text.encode() for text in TRIPS)]


def of_wikimedia():
    """With a schema that is known, or one that is known to be none."""
    values = [*made(damaged(changes)), *mutations.of_avro(mutations.CHANGES, MUTATED, SEED)]
    return [value for value in values if value is None or value[:5] in {b"", b"\0\0\0\0\3", b"\0\0\0\0\x4d"}]


class Registry:
    """Knows one schema."""

    def __init__(self, *_):
        pass

    def schema(self, schema_id):
        return V1 if schema_id == 3 else None


@pytest.fixture(autouse=True)
def registry(monkeypatch):
    monkeypatch.setattr("audit.domains.wikimedia.SchemaRegistry", Registry)


def facts(query, values, columns):
    """What the audit takes from the values: offset and those columns."""
    found = facts_of(query)
    return Counter(loaded(found, *values).database.execute(f'SELECT "offset", {columns} FROM {found.name}').fetchall())


def collected(frame, *columns):
    return Counter(tuple(row) for row in frame.selectExpr("offset", *columns).collect())


def assert_same(values, ours, theirs):
    """ours: of the audit. theirs: of the pipeline."""
    offsets = sorted({offset for offset, *_ in (ours - theirs) + (theirs - ours)})
    differences = [(values[at], [one for one in theirs if one[0] == at], [one for one in ours if one[0] == at]) for at in offsets]
    assert not differences, "\n".join(
        f"of {value!r:.2000} the pipeline takes {pipelines}, the audit {audits}" for value, pipelines, audits in differences
    )
    assert sum(ours.values()) > 20


def assert_same_letters(query, values, frame, offsets=None):
    """A letter tells one of the reasons that hold. offsets: of the records that have one."""
    letters, found = result(query), told(frame)
    expected, _ = expected_letters(loaded(letters.facts, *values).database, letters)
    own = {offset: letter for (_, _, offset), letter in expected.items()}
    assert offsets is None or found.keys() == offsets
    for offset, value in enumerate(values):
        letter, reason = own.get(offset), found.get(offset)
        is_same = letter.matches(replace(letter, reasons=[reason or ""])) if letter else reason is None
        assert is_same, f"{value!r:.2000}: the pipeline says {reason}, the audit {letter and letter.reasons}"


def test_of_nest_documents(records):
    values = of_nest()
    frame = records(*values)
    seen = collected(nest_documents.sightings(frame, FUTURE), "device_id", "unix_micros(start_time)")
    assert_same(values, facts("nest-camera-stats", values, "device_id, epoch_us(start_time)"), seen)
    read = collected(nest_devices.readings(frame, FUTURE), "structure_id", "cast(ambient_temperature_c * 100 as bigint)")
    assert_same(values, facts("nest-temperatures", values, "structure_id, CAST(ambient_temperature_c * 100 AS BIGINT)"), read)
    heard = collected(nest_status.reports(frame, FUTURE), "device_id", "unix_millis(at)", "is_online", "unix_millis(sighting)")
    assert_same(
        values, facts("nest-camera-status", values, "device_id, epoch_ms(CAST(reported_at AS TIMESTAMP)), is_online, sighting_ms"), heard
    )
    assert_same_letters("nest-dead-letters", values, nest.unusable(frame, FUTURE))


def test_of_taxi_trips(records):
    values = of_taxi()
    frame = records(*values, topic="nyc-taxi")
    hundredths = [f"cast({name} * 100 as bigint)" for name in taxi.MEASURES]
    counted = collected(taxi.trips(frame, FUTURE), "unix_micros(dropoff)", "PULocationID", "DOLocationID", "passenger_count", *hundredths)
    columns = f"epoch_us(dropoff), pickup_id, dropoff_id, passengers, {', '.join(hundredths)}"
    assert_same(values, facts("taxi-borough-stats", values, columns), counted)
    assert_same_letters("taxi-dead-letters", values, taxi.unusable(frame, FUTURE))


def test_of_changes_of_wikis(records):
    values = of_wikimedia()
    frame = records(*values, topic="wikimedia")
    columns = ("event_id", "unix_micros(edited_at)", "requested_by", "wiki", "namespace", "bytes")
    counted = collected(wikimedia.edits(frame, SCHEMAS, FUTURE), *columns)
    assert_same(
        values, facts("wikimedia-edit-stats", values, "event_id, epoch_us(edited_at), requested_by, wiki, namespace, bytes"), counted
    )
    assert_same_letters("wikimedia-dead-letters", values, wikimedia.unusable(frame, SCHEMAS, FUTURE))


def test_of_changes_whose_schema_has_other_types(records, monkeypatch):
    """Numbers that are doubles are read; what is no number is a dead letter."""
    numbers = other_types("double", "timestamp", "namespace")
    texts, flags = other_types("string", "timestamp"), other_types("string", "bot")
    monkeypatch.setattr(Registry, "schema", lambda _, number: {3: V1, 8: numbers, 9: texts, 10: flags}.get(number))
    doubles = [1.7e9, 1700000000.75, -0.5, -1.5, 2.0**64, -(2.0**63), 1e300, -1e300, float("nan"), float("inf"), float("-inf")]
    values = [in_wire_format(change(number, at=AT), 3) for number in range(20)]
    values += [in_wire_format({**change(30 + at, at=AT), "timestamp": one, "namespace": 0.0}, 8, numbers) for at, one in enumerate(doubles)]
    values += [in_wire_format({**change(60 + at, at=AT), "timestamp": AT, "namespace": one}, 8, numbers) for at, one in enumerate(doubles)]
    values += [
        in_wire_format({**change(90, at=AT), "timestamp": "1"}, 9, texts),
        in_wire_format({**change(91, at=AT), "bot": "1"}, 10, flags),
    ]
    schemas = WriterSchemas(V1, {3: V1, 8: numbers, 9: texts, 10: flags})
    frame = records(*values, topic="wikimedia")
    counted = collected(wikimedia.edits(frame, schemas, FUTURE), "event_id", "unix_micros(edited_at)", "namespace")
    assert_same(values, facts("wikimedia-edit-stats", values, "event_id, epoch_us(edited_at), namespace"), counted)
    assert_same_letters("wikimedia-dead-letters", values, wikimedia.unusable(frame, schemas, FUTURE))
    audited = archived(records_of("wikimedia", *values), pa.schema([("id", pa.int64())]), values=AvroValues(reader_of(Registry())))
    assert audited.num_rows == wikimedia.changes(frame, schemas).count() == len(values) - 2


def test_of_changes_whose_schema_queries_cannot_use(records, monkeypatch):
    """Too many digits, names that differ in case, a time instead of a number, several records: and their neighbours count."""
    fifty = {"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 2}
    time = {"type": "long", "logicalType": "timestamp-millis"}
    schemas = {
        3: V1,
        8: with_field("amount", fifty),
        9: with_field("User", "string"),
        10: other_types(time, "timestamp"),
        11: json.dumps([json.loads(V1), {"type": "record", "name": "Other", "fields": [{"name": "a", "type": "long"}]}]),
        12: with_field("amount", {**fifty, "precision": 38}),
    }
    monkeypatch.setattr(Registry, "schema", lambda _, number: schemas.get(number))
    monkeypatch.setattr(Registry, "versions", lambda *_: {3: V1}, raising=False)
    book = SchemaBook(Registry())
    book.learn(wikimedia.CHANGES, schemas, {})
    row = {**change(90, at=AT), "amount": Decimal("1.50"), "User": "b"}
    values = [in_wire_format(change(number, at=AT), 3) for number in range(20)]
    values += [in_wire_format(row, number, text) for number, text in schemas.items()]
    frame, known = records(*values, topic="wikimedia"), book.of(wikimedia.CHANGES)
    counted = collected(wikimedia.edits(frame, known, FUTURE), "event_id", "unix_micros(edited_at)")
    assert_same(values, facts("wikimedia-edit-stats", values, "event_id, epoch_us(edited_at)"), counted)
    assert_same_letters("wikimedia-dead-letters", values, wikimedia.unusable(frame, known, FUTURE), {22, 23, 21, 24})


def other_types(kind, *names):
    """Version 1, with another type of these fields."""
    own = json.loads(V1)
    return json.dumps({**own, "fields": [{**field, "type": kind} if field["name"] in names else field for field in own["fields"]]})


def assert_same_archive(query, values, frame, lake):
    """All rows that the pipeline writes of the values are those that the audit expects, in every column."""
    archive, settings, recount = result(query), Settings(home=lake.parent), Recount()
    folder = lake / archive.folder
    frame.coalesce(1).write.parquet(str(folder))
    (folder / "_spark_metadata").mkdir()
    written = "\n".join(json.dumps({"path": path.as_uri(), "action": "add"}) for path in folder.glob("*.parquet"))
    (folder / "_spark_metadata" / "0").write_text(f"v1\n{written}")
    committed = read_range(archive.facts.source, len(values), archive.files(settings))
    files = Files(archive, committed, recount.database)
    recount.load(files.facts, [records_of(archive.facts.source, *values)])
    counts, wrong = compared_rows(files, committed, recount.database)
    expected = loaded(files.rows, *values).database
    different = [(values[one[2]], files.rows_of(one), rows_of(archive, files.rows.name, one, expected)) for _, one in wrong]
    assert not different, "\n".join(
        f"of {value!r:.2000} the pipeline writes {theirs}, the audit {ours}" for value, theirs, ours in different
    )
    assert counts["equal"] > 20


def test_of_the_archives_of_nest(records, tmp_path):
    values = of_nest()
    frame = records(*values)
    assert_same_archive("nest-archive", values, nest.cameras(frame), tmp_path / "lake")
    assert_same_archive("nest-devices-archive", values, nest_devices.devices(frame), tmp_path / "lake")


def test_of_the_archive_of_trips(spark, records, tmp_path):
    values = of_taxi()
    rides = taxi.with_zones(taxi.trips(records(*values, topic="nyc-taxi"), FUTURE), taxi.ZONES.load(spark, Settings()))
    assert_same_archive("taxi-archive", values, rides, tmp_path / "lake")


def test_of_the_archive_of_changes(records, tmp_path):
    values = of_wikimedia()
    assert_same_archive("wikimedia-archive", values, wikimedia.changes(records(*values, topic="wikimedia"), SCHEMAS), tmp_path / "lake")


def test_of_the_archive_of_changes_with_times_and_decimals(records, tmp_path, monkeypatch):
    kinds = {
        "ms": ("long", "timestamp-millis"), "us": ("long", "timestamp-micros"), "local": ("long", "local-timestamp-millis"),
        "day": ("int", "date"), "noon": ("int", "time-millis"), "uuid": ("string", "uuid"), "nanos": ("long", "timestamp-nanos"),
    }  # fmt: skip
    own = json.loads(V1)

    def text(*, is_logical):
        more = [{"name": name, "type": {"type": kind, "logicalType": logical}} for name, (kind, logical) in kinds.items()]
        more.append({"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}})
        more = more if is_logical else [{"name": one["name"], "type": one["type"]["type"]} for one in more]
        return json.dumps({**own, "fields": [*own["fields"], *more]})

    meant, written = text(is_logical=True), text(is_logical=False)
    monkeypatch.setattr(Registry, "schema", lambda _, number: {3: V1, 8: meant}.get(number))
    millis, days = [0, -1, -62_135_596_800_000, 253_402_300_800_000, 9_000_000_000_000_000], [0, -1, 20_000, 5_000_000]
    rows = [{"ms": one, "us": one * 1000, "local": one, "day": 0, "noon": 0, "nanos": one} for one in millis]
    rows += [{"ms": 0, "us": 0, "local": 0, "day": one, "noon": one, "nanos": 0} for one in days]
    rows = [{**row, "uuid": "none", "amount": amount} for row in rows for amount in (b"\0", b"\x85", b"\x7f" * 8, b"\x7f" * 9)]
    values = [in_wire_format({**change(number, at=AT), **row}, 8, written) for number, row in enumerate(rows)]
    frame = wikimedia.changes(records(*values, topic="wikimedia"), WriterSchemas(V1, {3: V1, 8: meant}))
    assert_same_archive("wikimedia-archive", values, frame, tmp_path / "lake")


def test_of_the_archive_of_changes_with_maps(records, tmp_path, monkeypatch):
    own = json.loads(V1)
    kind = {"type": "array", "items": {"type": "map", "values": {"type": "map", "values": "long"}}}
    text = json.dumps({**own, "fields": [*own["fields"], {"name": "maps", "type": ["null", kind], "default": None}]})
    monkeypatch.setattr(Registry, "schema", lambda _, number: {3: V1, 8: text}.get(number))
    maps = [None, [], [{}], [{"a": {}}], [{"a": {"b": 1, "c": 2}}, {"d": {"e": 3}}]]
    values = [in_wire_format({**change(number, at=AT), "maps": maps[number % len(maps)]}, 8, text) for number in range(25)]
    frame = wikimedia.changes(records(*values, topic="wikimedia"), WriterSchemas(V1, {3: V1, 8: text}))
    assert_same_archive("wikimedia-archive", values, frame, tmp_path / "lake")
    with refused("column maps of wikimedia-archive", "int64", "cannot be compared"):
        archived(records_of("wikimedia", *values), pa.schema([("maps", pa.int64())]), values=AvroValues(reader_of(Registry())))
