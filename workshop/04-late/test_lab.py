import re
from dataclasses import replace
from functools import partial

from plain import one_camera
from streaming import at
from text_tables import expect_rows, frame_of

from infrastructure.settings import Settings
from pipeline.domains.nest import queries

CAMERA_STATS = queries(Settings())[0]
BATCHES = [["10:30"], ["10:05"], ["11:10"], ["10:59"], ["11:30", "09:00"], ["13:00", "11:59"]]


def ran(lab, stream, mode, delay="10 minutes"):
    """What the query does with each batch of BATCHES, as a learner predicts it: watermark, dropped, written."""
    query = replace(
        CAMERA_STATS,
        transform=partial(lab.hourly, delay=delay),
        watermark=None,  # the learner sets the watermark
        static_tables=(),
        sink=replace(CAMERA_STATS.sink, key=("window",)),
        mode=mode,
    )
    batches = [[one_camera("cam-1", at(time)) for time in times] for times in BATCHES]
    return [
        (f"{batch.watermark:%H:%M}" if batch.watermark else "none", str(batch.dropped), written(batch.rows))
        for batch in stream(query).run(*batches)
    ]


def written(rows):
    return " ".join(sorted(f"{row['window']['start'][11:13]}={row['count']}" for row in rows)) or "-"


def predicted(table):
    header, *lines = (line.strip() for line in table.strip().splitlines())
    more_columns = len(re.split(r" {2,}", header)) - 1
    return [[in_order(cell) for cell in re.split(r" {2,}", line, maxsplit=more_columns)[2:]] for line in lines]


def in_order(cell):
    """What a cell lists, in one order, with times as 10:20."""
    return " ".join(sorted(re.sub(r"(\d\d:\d\d):00\b", r"\1", cell.replace(",", " ")).split()))


def expect_prediction(table, happened, columns):
    lines = predicted(table)
    assert len(lines) == len(happened), f"came: {len(lines)} lines\nexpected: one for each of the {len(happened)} batches"
    for number, (line, truth) in enumerate(zip(lines, happened, strict=True), start=1):
        assert "?" not in line, f"batch {number} has a ? left: predict it first"
        assert len(line) == len(truth), (
            f"came:      batch {number} with {len(line)} predictions\nexpected:  {len(truth)}: {', '.join(columns)}; two spaces or more separate them"
        )
        wrong = [f"{column} {cell}" for column, cell, true in zip(columns, line, truth, strict=True) if cell != true]
        assert not wrong, f"batch {number}\n  you predicted:  {', '.join(wrong)}\n  the query did something else"


def test_people_are_counted_per_hour(lab, spark):
    """As in lab 2, without zip codes."""
    seen = frame_of(
        spark,
        """
        device_id  start_time
        cam-1      2026-01-01 10:30:00
        cam-2      2026-01-01 10:05:00
        cam-1      2026-01-01 11:10:00
        """,
        "device_id string, start_time timestamp",
    )
    expect_rows(
        lab.hourly(seen, "10 minutes"),
        """
        window                                      count
        {2026-01-01 10:00:00, 2026-01-01 11:00:00}  2
        {2026-01-01 11:00:00, 2026-01-01 12:00:00}  1
        """,
    )


def test_the_watermark_follows_the_latest_time_and_closes_hours(lab, stream):
    """withWatermark comes before groupBy, on the column that the window is made of, with the delay `delay`. After groupBy it has no effect."""
    watermark, dropped, _ = ran(lab, stream, "update", "8 minutes")[3]
    assert (watermark, dropped) == ("11:02", "1"), (
        "after 10:30, 10:05, 11:10 and 10:59, with a delay of 8 minutes"
        f"\n  came:      watermark {watermark}, dropped {dropped}\n  expected:  watermark 11:02, dropped 1"
    )


def test_you_predicted_what_update_mode_does(lab, stream):
    """The watermark is the latest time so far, minus ten minutes. An hour is closed when the watermark has reached its end, and a sighting is too late only if its hour is closed."""
    expect_prediction(lab.UPDATE, ran(lab, stream, "update"), ["watermark", "dropped", "written"])


def test_you_predicted_what_append_mode_does(lab, stream):
    """Append writes an hour once, when it is closed."""
    expect_prediction(lab.APPEND, [(cells[2],) for cells in ran(lab, stream, "append")], ["written"])
