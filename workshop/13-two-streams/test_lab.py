import re

import pytest
from pyspark.sql import functions as F
from streaming import Record, at
from text_tables import cells_of, expect_rows, frame_of

from pipeline.query import Query
from pipeline.sinks.console import Console
from pipeline.sources.kafka import KafkaTopic

TRIP, PAYMENT = "trip string, station string, ended_at timestamp", "for_trip string, paid_at timestamp, cents int"
TRIPS = """
trip  station  ended_at
t-1   Harbour  2026-01-01 10:00:00
t-2   Market   2026-01-01 10:05:00
t-3   Harbour  2026-01-01 10:10:00
"""
PAYMENTS = """
for_trip  paid_at              cents
t-1       2026-01-01 10:20:00  250
t-2       2026-01-01 11:30:00  300
t-9       2026-01-01 10:30:00  200
"""
PAID = """
trip  station  ended_at             paid_at              cents
t-1   Harbour  2026-01-01 10:00:00  2026-01-01 10:20:00  250
t-2   Market   2026-01-01 10:05:00  null                 null
t-3   Harbour  2026-01-01 10:10:00  null                 null
"""
BATCHES = [
    ({"t-1": "10:00", "t-2": "10:05"}, {}),
    ({}, {"t-1": "10:20"}),
    ({"t-3": "11:50"}, {}),
    ({}, {"t-3": "11:55"}),
    ({}, {"t-2": "11:00"}),
]


@pytest.fixture
def joined(lab, spark):
    return lambda trips, payments: lab.with_payments(frame_of(spark, trips, TRIP), frame_of(spark, payments, PAYMENT))


@pytest.fixture
def joining(lab, stream):
    """A stream of two topics with the learner's join."""

    def of(records, topic, schema):
        value = F.from_json(F.col("value").cast("string"), schema)
        return records.where(F.col("topic") == topic).select(value.alias("value")).select("value.*")

    def transform(records):
        return lab.with_payments(of(records, "bike-trips", TRIP), of(records, "bike-payments", PAYMENT))

    return stream(Query("bike-paid-trips", source=KafkaTopic("bike-trips"), decode=transform, sink=Console("bike-paid-trips")))


def records(trips, payments):
    ended = [Record({"trip": trip, "station": "Harbour", "ended_at": at(time)}) for trip, time in trips.items()]
    paid = [Record({"for_trip": trip, "paid_at": at(time), "cents": 250}, topic="bike-payments") for trip, time in payments.items()]
    return [*ended, *paid]


def clock(watermark):
    return f"{watermark:%H:%M}" if watermark else "none"


def written(rows):
    return ", ".join(sorted(f"{row['trip']} {'unpaid' if row['paid_at'] is None else 'paid'}" for row in rows)) or "-"


def in_order(cell):
    """What a learner wrote, with the trips in the order of `written`, and 9:55 as 09:55."""
    return ", ".join(sorted(re.split(r",\s*", re.sub(r"^\d:", r"0\g<0>", cell))))


def test_each_trip_has_the_payment_that_came_in_time(joined):
    """A trip that nobody has paid in time stays. So what belongs to the join is a condition of the join: a `where` after it sees nulls."""
    expect_rows(joined(TRIPS, PAYMENTS), PAID)


def test_a_payment_is_in_time_from_the_end_of_the_trip_to_an_hour_later(joined):
    """Both ends are included. Who pays before the trip has ended has paid another one, with the same number."""
    trips = """
    trip  station  ended_at
    t-1   Harbour  2026-01-01 10:00:00
    t-2   Harbour  2026-01-01 10:00:00
    t-3   Harbour  2026-01-01 10:00:00
    """
    payments = """
    for_trip  paid_at              cents
    t-1       2026-01-01 10:00:00  250
    t-2       2026-01-01 11:00:00  300
    t-3       2026-01-01 09:59:59  350
    """
    expect_rows(
        joined(trips, payments),
        """
        trip  station  ended_at             paid_at              cents
        t-1   Harbour  2026-01-01 10:00:00  2026-01-01 10:00:00  250
        t-2   Harbour  2026-01-01 10:00:00  2026-01-01 11:00:00  300
        t-3   Harbour  2026-01-01 10:00:00  null                 null
        """,
    )


def test_each_stream_has_a_watermark_and_the_slower_one_holds(joining):
    """Each side of the join needs withWatermark with its own delay, on its own time. Of both watermarks, Spark takes the lower."""
    first, second = joining.run(records({"t-7": "10:00"}, {"t-8": "10:30"}), records({"t-9": "11:00"}, {}))
    came = f"{clock(first.watermark)}, {clock(second.watermark)}"
    assert came == "09:50, 10:10", (
        "after a trip that ended at 10:00 and a payment of 10:30, and after a trip that ended at 11:00"
        f"\ncame:      watermarks {came}\nexpected:  watermarks 09:50, 10:10"
    )


def test_you_predicted_when_a_trip_is_written(lab, joining):
    """The watermark is the lower of two: the latest trip minus 10 minutes, the latest payment minus 20. A trip is unpaid once no payment can come in time: those at or before the watermark are dropped."""
    happened = [(clock(batch.watermark), written(batch.rows)) for batch in joining.run(*(records(*batch) for batch in BATCHES))]
    lines = [[in_order(cell) for cell in line[3:]] for line in cells_of(lab.PREDICTED)[1:]]
    assert len(lines) == len(happened), f"came: {len(lines)} lines\nexpected: one for each of the {len(happened)} batches"
    for number, (line, truth) in enumerate(zip(lines, happened, strict=True), start=1):
        assert "?" not in line, f"batch {number} has a ? left: predict it first"
        assert len(line) == len(truth), (
            f"came:      batch {number} with {len(line)} predictions\nexpected:  2: watermark, written; two spaces or more separate them"
        )
        wrong = [f"{name} {cell}" for name, cell, true in zip(("watermark", "written"), line, truth, strict=True) if cell != true]
        assert not wrong, f"batch {number}\n  you predicted:  {', '.join(wrong)}\n  the query did something else"


def test_you_measured_both_modes(lab):
    """The benchmark prints a line for each mode."""
    modes = {mode: figures for mode, *figures in cells_of(lab.MEASURED)[1:]}
    assert list(modes) == ["micro-batches", "real-time"], f"came:      lines {', '.join(modes)}\nexpected:  lines micro-batches, real-time"
    p50 = {}
    for mode, figures in modes.items():
        assert "?" not in figures, f"{mode} has a ? left: measure it first"
        try:
            p50[mode], _, _ = [float(figure.replace(",", "")) for figure in figures]
        except ValueError:
            msg = (
                f"came:      {mode}  {'  '.join(figures)}\nexpected:  {mode} and three numbers without units: p50 and p95 in ms, and cores"
            )
            raise AssertionError(msg) from None
    assert p50["real-time"] < p50["micro-batches"], (
        f"came:      p50 {p50['micro-batches']:g} ms in micro-batches, {p50['real-time']:g} ms in real-time mode"
        "\nexpected:  less in real-time mode; if they are in the right lines, measure again while nothing else runs"
    )
