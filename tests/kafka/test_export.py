"""`streamgauge export`: result topics as Parquet files, each key once, for readers that do not speak Kafka."""

from datetime import timedelta
from io import BytesIO

import duckdb
import pandas as pd
import pytest
from foreign_rows import example
from plain import START, write_counts
from pyarrow.parquet import read_table
from running import one_line_error, streamgauge, succeed

from infrastructure.kafka.writing import write_rows
from infrastructure.rows import checked
from streamgauge.operations.export import TABLES, as_parquet

DAY = 24


def exported(settings, *options, code=0):
    done = streamgauge("export", "nest-camera-stats", *options, settings=settings)
    assert done.returncode == code, done.stderr
    return done


def counts(settings):
    """People by hour since START, as DuckDB reads them."""
    files = f"{settings.lake}/results/nest-camera-stats/*/*.parquet"
    found = duckdb.sql(
        f"select \"window\".start at time zone 'UTC', count from read_parquet('{files}', hive_partitioning = true)"
    ).fetchall()
    assert len(found) == len({start for start, _ in found}), f"a key has two rows: {found}"
    return {(start - START.replace(tzinfo=None)) // timedelta(hours=1): count for start, count in found}


def test_the_files_follow_the_topic_and_what_is_unchanged_is_not_written(fresh):
    write_counts(fresh, {1: 5, DAY: 7, 2 * DAY: 1})
    assert ": 3 rows, 3 files replaced, " in exported(fresh).stdout
    assert counts(fresh) == {1: 5, DAY: 7, 2 * DAY: 1}
    assert ": 3 rows, unchanged, " in exported(fresh, "--check").stdout

    write_counts(fresh, {DAY: 8, DAY + 1: 2, 2 * DAY: None})
    assert ": 3 rows, 2 files differ, " in exported(fresh, "--check", code=1).stdout
    assert counts(fresh) == {1: 5, DAY: 7, 2 * DAY: 1}, "--check has written"
    assert ": 3 rows, 2 files replaced, " in exported(fresh).stdout
    assert counts(fresh) == {1: 5, DAY: 8, DAY + 1: 2}


def test_a_row_of_another_program_is_left_out_with_a_line(fresh):
    write_counts(fresh, {1: 5})
    write_rows(fresh.kafka, "nest-camera-stats", {b"other": b"[1]"})
    done = exported(fresh)
    assert "1 row of topic nest-camera-stats cannot be read and left out" in done.stderr
    assert counts(fresh) == {1: 5}


def test_pandas_reads_times_with_their_zone_and_the_day_as_a_column(fresh):
    write_counts(fresh, {1: 5})
    exported(fresh)
    (row,) = pd.read_parquet(fresh.lake / "results" / "nest-camera-stats").to_dict("records")
    assert row["window"] == {"start": START + timedelta(hours=1), "end": START + timedelta(hours=2)}
    assert (row["zip_code"], row["count"], str(row["date"])) == ("unknown", 5, f"{START:%Y-%m-%d}")


def test_without_names_all_result_tables_are_written_and_a_name_that_is_none_is_refused(fresh):
    written = succeed("export", settings=fresh).stdout.splitlines()
    assert [line.partition(":")[0] for line in written] == list(TABLES)
    assert "nest-camera-stats" in one_line_error(streamgauge("export", "nest-logs", settings=fresh))


@pytest.mark.parametrize("name", TABLES)
def test_every_field_of_a_row_comes_back(name):
    row = checked(TABLES[name].row, example(name))
    assert read_table(BytesIO(as_parquet(TABLES[name].row, [row]))).to_pylist() == [row]
