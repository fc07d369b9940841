"""What a green taxi trip is on its way to Kafka: its columns, and the event that is made of it.

**Times.** TLC writes the local wall-clock time of New York, without a time zone. Here and in the pipeline that time is taken as if it were
UTC: 08:00 in a TLC file is 08:00Z in the record and in every result. An hour of the day stays the hour that people saw on the clock; the
price is that the hour of the change to winter time holds two hours of trips, and the one of the change to summer time none.

**Key.** PULocationID as text: the trips that began in a zone stay in order, in one partition.
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
"""The columns of a trip, in the order of the record: times in ms since 1970, distance in miles, amounts in dollars. Any of them may be null."""

TRIPS_A_BATCH = 4096
"""Trips that are turned into Python objects together."""


def as_events(batches: Iterable[pa.RecordBatch]) -> Iterator[Event]:
    """An event for each row of `batches`, whose columns are TRIP and whose rows are in order of drop-off; a value is the row as JSON.

    A trip that lacks its drop-off time has no place in that order: it is sent at the moment of the one before it, and counts as unusable.
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
