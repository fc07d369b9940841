"""An event from the future stops no count: one of 2099 among others of each domain, in the midst of batches and partitions."""

from datetime import UTC, datetime, timedelta

import pytest
from avro import V1, change, in_wire_format
from plain import one_camera
from streaming import Record

from infrastructure.settings import Settings
from pipeline.domains import nest, taxi, wikimedia
from pipeline.formats.confluent_avro import WriterSchemas

EVENTS, PARTITIONS = 60, 3
START, OF_2099 = datetime(2026, 1, 1, tzinfo=UTC), datetime(2099, 1, 1, tzinfo=UTC)
SETTINGS = Settings()
SCHEMAS = WriterSchemas(V1, {3: V1})


def seen(number, time):
    return one_camera(f"cam-{number % 50}", time)


def trip(number, time):
    return b'{"lpep_dropoff_datetime": %d, "PULocationID": 74, "trip_distance": %d}' % (time.timestamp() * 1000, number)


def edit(number, time):
    return in_wire_format(change(number, at=int(time.timestamp())), 3)


def batches(value_of):
    """Two, of events a second apart, each on its clock, one after the other to the partitions; the one of 2099 stands in the first batch."""
    times = [START + timedelta(seconds=number) for number in range(EVENTS)]
    records = [Record(value_of(number, time), number % PARTITIONS, timestamp=time) for number, time in enumerate(times)]
    half = EVENTS // 2
    return [*records[:10], Record(value_of(EVENTS, OF_2099), timestamp=times[10]), *records[10:half]], records[half:]


@pytest.mark.parametrize(
    ("domain", "value_of", "schemas", "counting", "column", "reason"),
    [
        (nest, seen, None, "nest-camera-stats", "count", "start_time is in the future; the rest was used"),
        (taxi, trip, None, "taxi-borough-stats", "trips", "lpep_dropoff_datetime is in the future"),
        (wikimedia, edit, SCHEMAS, "wikimedia-wiki-stats", "edits", "timestamp is in the future; archived all the same"),
    ],
    ids=["nest", "taxi", "wikimedia"],
)
def test_nothing_after_an_event_of_2099_is_lost_and_it_is_a_dead_letter(stream, domain, value_of, schemas, counting, column, reason):
    by_name = {query.name: query for query in domain.queries(SETTINGS)}
    counted, letters = (
        stream(by_name[name], partitions=PARTITIONS, schemas=schemas)
        for name in (counting, f"{domain.__name__.rpartition('.')[2]}-dead-letters")
    )
    assert [batch.dropped for batch in counted.run(*batches(value_of))] == [0, 0]
    assert sum(row[column] for row in counted.table) == EVENTS
    (letter,) = letters.run(batches(value_of)[0])[0].rows
    assert {header["key"]: bytes(header["value"]).decode() for header in letter["headers"]}["reason"] == reason


def test_a_simulation_counts_by_its_own_clock(stream):
    query, *_ = nest.queries(SETTINGS)
    year_2300 = datetime(2300, 1, 1, tzinfo=UTC)
    stated = [Record(seen(number, year_2300), timestamp=START, clock=year_2300) for number in range(3)]
    behind = Record(seen(9, START), timestamp=START, clock=START - timedelta(days=365))
    (only,) = stream(query).run([*stated, behind])
    assert [row["count"] for row in only.rows] == [3], "what lies ahead of the clock that is stated is in the future, wherever Kafka's is"
