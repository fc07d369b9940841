"""`streamgauge run --batch`: the same transform as the stream, over a fixed range of offsets."""

import json
from datetime import timedelta

import pytest
from plain import START, one_camera, results, write_topic
from running import one_line_error, streamgauge, succeed

QUERY = "nest-camera-stats"


def batch(settings, *options, **variables):
    return streamgauge("run", QUERY, "--batch", *options, settings=settings, **variables)


def printed(done):
    """(zip_code, hour) -> count of the rows that were printed."""
    assert done.returncode == 0, done.stderr
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines() if line.startswith("|")]
    return {(zip_code, window.strip("{}").split(",")[0].replace(" ", "T") + "Z"): int(count) for zip_code, window, count in cells[1:]}


def test_the_batch_of_all_records_gives_what_the_stream_has_written(fresh):
    write_topic(fresh, "nest-logs", [one_camera(f"cam-{number % 9}", START + timedelta(minutes=7 * number)) for number in range(60)])
    succeed("run", QUERY, "--once", settings=fresh)
    assert printed(batch(fresh)) == results(fresh)
    assert sum(results(fresh).values()) == 60


def test_a_range_of_offsets_is_counted_again_and_nothing_is_kept(fresh):
    write_topic(fresh, "nest-logs", [one_camera(f"cam-{number}", START) for number in range(10)], partitions=1)
    starts, ends = ({"nest-logs": {"0": number, "1": 0, "2": 0}} for number in (2, 7))
    for _ in range(2):
        done = batch(fresh, "--ending-offsets", json.dumps(ends), STREAMGAUGE_STARTING_OFFSETS=json.dumps(starts))
        assert sum(printed(done).values()) == 5
    assert results(fresh) == {}
    assert not list((fresh.home / "checkpoints").glob("*"))


def test_offsets_that_spark_does_not_take_are_one_clear_line(fresh):
    line = one_line_error(batch(fresh, "--ending-offsets", '{"nest-logs": {"0": 1}}'))
    assert "Partitions specified" in line
    assert "for every partition" in line


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("run", "--batch"), "streamgauge run nest-camera-stats"),
        (("run", QUERY, "--batch", "--once"), "--once"),
        (("run", QUERY, "--ending-offsets", "{}"), "--batch"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(tmp_path, settings, arguments, told):
    line = one_line_error(streamgauge(*arguments, settings=settings, STREAMGAUGE_HOME=str(tmp_path), without_spark=True))
    assert told in line


def test_a_query_with_timers_is_no_batch(fresh):
    assert "nest-camera-status has timers" in one_line_error(streamgauge("run", "nest-camera-status", "--batch", settings=fresh))
