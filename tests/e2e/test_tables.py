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
    table, view = [one for one in json.loads(listed.stdout) if one["format"] != "topic"]
    assert (table["table"], table["format"], table["path"]) == ("nest_cameras", "parquet", str(fresh.lake.absolute() / "nest" / "cameras"))
    assert "offset bigint" in table["columns"]
    assert (view["table"], view["format"]) == ("nest_cameras_distinct", "view")
    few = streamgauge("query", "select * from nest_cameras", "--limit", "3", "--format", "csv", settings=fresh)
    assert len(few.stdout.splitlines()) == 4
    assert "only the first 3 rows; --limit" in few.stderr
    wrong = streamgauge("query", "drop table nest_cameras", settings=fresh)
    assert wrong.returncode == 2
    assert wrong.stderr.splitlines()[-1].startswith("error: only queries are allowed")
    assert "Traceback" not in wrong.stderr
