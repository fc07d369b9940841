"""The columns of a green taxi trip, and the events made of trips.

**Times.** TLC writes New York's wall-clock time without a time zone. Producer and pipeline treat it as UTC: 08:00 in a TLC file is 08:00Z
in the record and in every result. An hour of the day thus stays the local hour. The cost: the hour of the change to winter time contains
two hours of trips, and the hour of the change to summer time none.

**Key.** PULocationID as text, so that the trips of a pick-up zone stay in order, in one partition.
"""

from collections.abc import Iterable, Iterator

import orjson
import pyarrow as pa

from producers.delivery.events import Event

PICKUP, DROPOFF, PICKUP_ZONE = "lpep_pickup_datetime", "lpep_dropoff_datetime", "PULocationID"
TIMES = (PICKUP, DROPOFF)
ESSENTIAL = (PICKUP, DROPOFF, PICKUP_ZONE)

TRIP = pa.schema(
    [
        ("VendorID", pa.int64()),
        (PICKUP, pa.int64()),
        (DROPOFF, pa.int64()),
        ("store_and_fwd_flag", pa.string()),
        ("RatecodeID", pa.int64()),
        (PICKUP_ZONE, pa.int64()),
        ("DOLocationID", pa.int64()),
        ("passenger_count", pa.int64()),
        ("trip_distance", pa.float64()),
        ("fare_amount", pa.float64()),
        ("extra", pa.float64()),
        ("mta_tax", pa.float64()),
        ("tip_amount", pa.float64()),
        ("tolls_amount", pa.float64()),
        ("ehail_fee", pa.float64()),
        ("improvement_surcharge", pa.float64()),
        ("total_amount", pa.float64()),
        ("payment_type", pa.int64()),
        ("trip_type", pa.int64()),
        ("congestion_surcharge", pa.float64()),
    ]
)
"""The columns of a trip, in record order: times in ms since 1970, distance in miles, amounts in dollars. All are nullable."""

TRIPS_PER_BATCH = 4096
"""Trips converted to Python objects at a time."""


def as_events(batches: Iterable[pa.RecordBatch]) -> Iterator[Event]:
    """An event for each row of `batches`, which have the schema TRIP and are ordered by drop-off. Values are rows as JSON.

    A trip without a drop-off time has no place in that order. It is sent with the time of the previous trip and counts as unusable.
    """
    stream_time_ms = 0
    for batch in batches:
        for trip in batch.to_pylist():
            dropoff_ms, zone = trip[DROPOFF], trip[PICKUP_ZONE]
            is_usable = dropoff_ms is not None
            if is_usable:
                stream_time_ms = dropoff_ms
            key = b"%d" % zone if zone is not None else None
            yield Event(stream_time_ms, stream_time_ms, key, orjson.dumps(trip), (), is_usable)
