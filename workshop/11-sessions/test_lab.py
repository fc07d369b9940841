from dataclasses import replace

import pytest
from pyspark.sql import functions as F
from streaming import Record, at
from text_tables import cells_of, expect_rows, frame_of

from infrastructure.settings import Settings
from pipeline.domains.taxi import queries

ZONE_SESSIONS = next(query for query in queries(Settings()) if query.name == "taxi-zone-sessions")
RIDES = """
fingerprint  zone_id  dropoff
a1           7        2026-01-01 10:00:00
a2           7        2026-01-01 10:05:00
a2           7        2026-01-01 10:05:00
a3           7        2026-01-01 10:10:01
b1           4        2026-01-01 10:01:00
"""
SESSIONS = """
zone_id  window                                      last                 trips
4        {2026-01-01 10:01:00, 2026-01-01 10:06:00}  2026-01-01 10:01:00  1
7        {2026-01-01 10:00:00, 2026-01-01 10:10:00}  2026-01-01 10:05:00  2
7        {2026-01-01 10:10:01, 2026-01-01 10:15:01}  2026-01-01 10:10:01  1
"""
STREAM = """
batch  drop-offs     watermark  written
1      10:00, 10:08  09:58      -
2      10:04         09:58      -
3      10:30         10:20      10:00 to 10:08: 3
"""
OPEN = """
fingerprint  zone_id  dropoff
a1           7        2026-01-01 10:00:00
a2           7        2026-01-01 10:04:00
a3           7        2026-01-01 10:08:00
b1           4        2026-01-01 10:01:00
"""
FINAL = """
zone_id  window                                      last                 trips
4        {2026-01-01 10:01:00, 2026-01-01 10:06:00}  2026-01-01 10:01:00  1
"""
BUSY = """
fingerprint  zone_id  dropoff
a3           7        2026-01-01 10:03:00
a1           7        2026-01-01 10:00:00
a2           7        2026-01-01 10:01:00
a2           7        2026-01-01 10:01:00
a4           7        2026-01-01 10:04:00
a7           7        2026-01-01 10:23:00
a6           7        2026-01-01 10:21:00
a5           7        2026-01-01 10:20:00
b1           4        2026-01-01 10:00:00
b2           4        2026-01-01 10:02:00
"""
CROWDED = """
zone_id  since                crossed
7        2026-01-01 10:00:00  2026-01-01 10:03:00
7        2026-01-01 10:20:00  2026-01-01 10:23:00
"""
SESSION = "zone_id int, window struct<start timestamp, end timestamp>, last timestamp, trips bigint"


@pytest.fixture
def rides(spark):
    return lambda table: frame_of(spark, table, "fingerprint string, zone_id int, dropoff timestamp")


@pytest.fixture
def zones(stream):
    """Makes a stream of a function of the learner's, on the product's decoded trips."""

    def made(function, key):
        def transform(trips):
            return function(trips.select("fingerprint", F.col("PULocationID").cast("int").alias("zone_id"), "dropoff"))

        sink = replace(ZONE_SESSIONS.sink, key=key)
        return stream(replace(ZONE_SESSIONS, transform=transform, static_tables=(), sink=sink), settings=Settings(watermark="10 minutes"))

    return made


def trip(dropoff, zone_id=7):
    return Record({"lpep_dropoff_datetime": round(at(dropoff).timestamp() * 1000), "PULocationID": zone_id}, timestamp=at("18:00"))


def test_trips_within_five_minutes_are_one_session(lab, rides):
    """A gap of exactly five minutes continues a session, a longer one ends it. The window ends five minutes after the last trip. The record a2 came twice."""
    expect_rows(lab.sessions(rides(RIDES)), SESSIONS)


def test_a_trip_joins_two_sessions_and_a_session_is_written_when_it_is_final(lab, zones):
    """Spark keeps open sessions in its state, and writes one when the watermark has passed the end of its window. The stream has a watermark already."""
    lines = cells_of(STREAM)[1:]
    batches = zones(lab.sessions, ("zone_id", "window")).run(*([trip(time) for time in line[1].split(", ")] for line in lines))
    for (number, _, *expected), batch in zip(lines, batches, strict=True):
        written = [f"{row['window']['start'][11:16]} to {row['last'][11:16]}: {row['trips']}" for row in batch.rows]
        came = f"watermark {batch.watermark:%H:%M}; written {', '.join(written) or '-'}"
        wanted = f"watermark {expected[0]}; written {expected[1]}"
        assert came == wanted, f"batch {number}\ncame:      {came}\nexpected:  {wanted}"


def test_a_batch_gives_the_final_sessions(lab, spark, rides):
    """At 10:10 the session of zone 7 is open, because it ends at 10:13. If you filtered before collect(), see what Spark did: `explain()` shows it."""
    until = spark.sql("SELECT timestamp '2026-01-01 10:10:00'").first()[0]
    expect_rows(spark.createDataFrame(lab.final_sessions(rides(OPEN), until), SESSION), FINAL)


def test_a_crowded_session_has_the_time_at_which_it_reached_the_limit(lab, rides):
    """The limit is 3. Order the drop-offs of a session, and take the third. The time at which the query runs is another one when it runs again."""
    expect_rows(lab.crowded(rides(BUSY), 3), CROWDED)


def test_a_trip_that_arrives_late_changes_which_was_the_third(lab, zones):
    """In zone 7, the trip of 10:01 comes a batch after the one of 10:03: the third of the session is that of 10:03. Rows of a group come in no order."""
    crowds = zones(lambda rides: lab.crowded(rides, 3), ("zone_id", "since"))
    crowds.run([trip("10:00"), trip("10:03")], [trip(time) for time in ("10:01", "10:20", "10:21", "10:23")], [trip("10:40")])
    came = sorted(f"{row['since'][11:16]} to {row['crossed'][11:16]}" for row in crowds.table)
    expected = ["10:00 to 10:03", "10:20 to 10:23"]
    assert came == expected, f"came:      {', '.join(came)}\nexpected:  {', '.join(expected)}"
