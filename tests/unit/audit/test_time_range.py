"""Which records a time range needs: histories with batches and watermarks in, the rows of a range out, as those of a recount of everything."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest
from auditing import read_range, records, result

from audit.reading.checkpoints import stretches
from audit.reading.files import SourceFile
from audit.reading.read_range import ReadRange
from audit.recount.recount import Recount
from audit.time_range import TimeRange, ms_of
from contract.checkpoints.contents import Batch
from contract.checkpoints.names import CheckpointName
from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings

START = datetime(2026, 1, 1, tzinfo=UTC)
WHICH = ("nyc-taxi", 0)
DELAY, SKEW = "10 minutes", "1 hour"
AFTER_ALL = START + timedelta(days=2)


def of_query(home, sources=1, mode="update"):
    """The checkpoint of a query whose plan has so many sources."""
    place = CheckpointName("query", 1, mode).place(Settings(home=home))
    (place.folder / "offsets").mkdir(parents=True, exist_ok=True)
    (place.folder / "offsets" / "0").write_text("\n".join(["v1", "{}", *['{"nyc-taxi":{"0":1}}'] * sources]))
    return place


def at(hours):
    return START + timedelta(hours=hours)


def history(rng):
    """Trips of half a day in a poor order, and the batches that have read them, with their watermarks."""
    minutes = [max(0, rng.gauss(number * 5, 10)) for number in range(150)]
    trips = [
        {"lpep_dropoff_datetime": ms_of(START + timedelta(minutes=one)), "PULocationID": rng.choice([74, 74, 75]), "VendorID": number}
        for number, one in enumerate(minutes)
    ]
    batches, watermark_ms, end = [], 0, 0
    while end < len(trips):
        start, end = end, min(end + rng.randrange(1, 12), len(trips))
        batches.append(Batch(len(batches), {WHICH: end}, watermark_ms))
        late_until = batches[-2].watermark_ms if len(batches) > 1 else 0
        newest = [one["lpep_dropoff_datetime"] for one in trips[start:end] if one["lpep_dropoff_datetime"] > late_until]
        watermark_ms = max([watermark_ms, *(one - 600_000 for one in newest)])
    return [orjson.dumps(one) for one in trips], batches


def rows_of(table, values, read, span):
    """The rows of the windows within the span, of the records that were read."""
    recount, needed = Recount(), span.needed_by(table)
    start, end = read.starts[WHICH], read.ends[WHICH]
    recount.load([table.facts], [records("nyc-taxi", *values, clock=AFTER_ALL).slice(start, max(end - start, 0))])
    recount.judge(table, stretches(read.first_offsets, read.batches, len(read.batches)), 0, ms_of(needed.start))
    found = recount.written(table, ms_of(AFTER_ALL), needed.condition(table))
    return {key: rows for key, rows in found.items() if span.has(key)}


@pytest.mark.parametrize("query", ["taxi-borough-stats", "taxi-flows", "taxi-zone-sessions", "taxi-zone-sessions-early"])
def test_the_rows_of_a_range_are_those_of_a_recount_of_everything_and_fewer_records_are_read(query, tmp_path):
    table, rng, read_in_all = result(query), random.Random(query), 0
    for _ in range(4):
        values, batches = history(rng)
        end = len(values)
        whole = replace(read_range("nyc-taxi", end), place=of_query(tmp_path), batches=batches)
        everything = rows_of(table, values, whole, TimeRange())
        first = rng.randrange(1, 10)
        span = TimeRange(at(first), at(first + rng.randrange(1, 4)))
        needed = span.needed_by(table)
        part = whole.since(ms_of(needed.start), DELAY, SKEW)
        part = part if needed.end is None else part.until(ms_of(needed.end))
        read_in_all += part.records
        assert rows_of(table, values, part, span) == {key: rows for key, rows in everything.items() if span.has(key)}, (span, part)
        assert part.truncated == {}, "retention has cut nothing"
    assert read_in_all < 4 * 150 * 0.8


BATCHES = [Batch(0, {WHICH: 10}, 0), Batch(1, {WHICH: 20}, ms_of(at(1))), Batch(2, {WHICH: 30}, ms_of(at(2)))]


@pytest.mark.parametrize(
    ("sources", "mode", "hour", "first"),
    [
        (1, "update", 1 + 1 / 6, 0),  # an event 10 minutes after the watermark may be in the batch before it
        (1, "update", 1.2, 10),
        (1, "update", 2.2, 20),
        (3, "update", 2 + 1 / 6, 0),
        (3, "update", 2.2, 10),  # an idle partition holds the watermark back by an hour
        (1, "real-time", 23, 0),
    ],
)
def test_what_can_be_before_a_time_is_bounded_by_the_watermark_the_delay_and_the_skew(sources, mode, hour, first, tmp_path):
    place = of_query(tmp_path, sources, mode)
    found = replace(read_range("nyc-taxi", 30), place=place, batches=BATCHES).since(ms_of(at(hour)), DELAY, SKEW)
    assert found.first_offsets.get(WHICH, 0) == first


@pytest.mark.parametrize(("hour", "end"), [(0.9, 20), (1, 20), (1.1, 30), (5, 30)])
def test_batches_that_drop_all_of_a_time_are_not_read(hour, end):
    found = replace(read_range("nyc-taxi", 30), batches=BATCHES).until(ms_of(at(hour)))
    assert (found.ends[WHICH], found.committed_ends[WHICH]) == (end, end)


def test_rows_of_records_are_chosen_by_their_kafka_timestamps_and_those_that_retention_has_deleted_stay_unknown(monkeypatch):
    by_time = {ms_of(at(1)): {WHICH: 10}, ms_of(at(2)): {WHICH: 20}, ms_of(at(9)): {WHICH: None}}
    monkeypatch.setattr("audit.reading.read_range.offsets_at", lambda _kafka, _partitions, time_ms: by_time[time_ms])

    def part(whole, *hours):
        found: ReadRange = whole.at_times(TimeRange(*(hour and at(hour) for hour in hours)), None)
        return found.first_offsets.get(WHICH, 0), found.ends[WHICH], found.truncated

    whole = read_range("nyc-taxi", 30)
    assert part(whole, 1, 2) == (10, 20, {})
    assert part(whole, None, 1) == (0, 10, {})
    assert part(whole, 9, None) == (30, 30, {})
    assert part(replace(whole, retained_offsets={WHICH: 15}), 1, 2) == (0, 20, {WHICH: 15})
    files = replace(
        read_range("files:/a", 5),
        files={"files:/a": SourceFile(Path("/a"), ms_of(at(1)), 0, "files:/a")},
        retained_offsets={("files:/a", 0): 0},
    )
    assert [files.at_times(TimeRange(at(start), at(end)), None).records for start, end in ((2, 3), (0, 1))] == [0, 0]


@pytest.mark.parametrize(
    ("start", "end", "what"),
    [
        ("yesterday", None, "--from is 'yesterday'; expected a date and time"),
        ("1969-12-31T23:59:59.999", None, "of the years 1970 to 9999"),
        ("0001-01-01T00:00+01:00", None, "of the years 1970 to 9999"),
        (None, "9999-12-31T23:59:59-01:00", "of the years 1970 to 9999"),
        ("2026-01-02", "2026-01-01", "--from 2026-01-02 is not before --to 2026-01-01"),
    ],
)
def test_a_range_that_is_none_is_one_line(start, end, what):
    with pytest.raises(StreamgaugeError, match=what):
        TimeRange.of(start, end)


def test_times_have_offsets_or_are_utc():
    assert TimeRange.of("2026-01-01T01:00", "2026-01-01T03:00+01:00") == TimeRange(at(1), at(2))
