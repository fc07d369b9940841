"""`streamgauge query` on an archive of the pipeline, as a user runs it."""

import json

from running import streamgauge


def archived(settings):
    produced = streamgauge("produce", "nest", "--limit", "1500", "--unpaced", "--start", "2026-01-01T00:00:00Z", settings=settings)
    assert produced.returncode == 0, produced.stderr
    done = streamgauge("run", "nest-archive", "--once", settings=settings)
    assert done.returncode == 0, done.stderr


def test_tables_are_listed_with_their_columns_and_a_limit_is_told(fresh):
    archived(fresh)
    listed = streamgauge("query", "--format", "json", settings=fresh)
    (table,) = json.loads(listed.stdout)
    assert (table["table"], table["format"], table["path"]) == ("nest_cameras", "parquet", str(fresh.lake.absolute() / "nest" / "cameras"))
    assert "offset bigint" in table["columns"]
    few = streamgauge("query", "select * from nest_cameras", "--limit", "3", "--format", "csv", settings=fresh)
    assert len(few.stdout.splitlines()) == 4
    assert "these are the first 3 rows, and there are more" in few.stderr
    wrong = streamgauge("query", "drop table nest_cameras", settings=fresh)
    assert wrong.returncode == 2
    assert wrong.stderr.splitlines()[-1].startswith("error: only a query can be asked")
    assert "Traceback" not in wrong.stderr
