"""Ad-hoc SQL over real tables: a Delta table and an archive that a stream has written."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from running import one_line_error, streamgauge

from contract.errors import StreamgaugeError
from contract.settings import Settings
from pipeline.lake.ad_hoc_sql import answer
from pipeline.lake.tables import tables

AT = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def settings(spark, tmp_path_factory):
    """A lake with Delta table `trips` and archive `nest_cameras`, whose files of the second batch have a column more."""
    chosen = Settings(home=tmp_path_factory.mktemp("home"))
    rows = spark.createDataFrame([(number, AT, Decimal("1.10")) for number in range(5)], "id long, at timestamp, fare decimal(12,2)")
    rows.write.format("delta").save(str(chosen.lake / "trips"))
    for batch, columns in enumerate(["id long", "id long, more string"]):
        source, archive = chosen.home / "source", chosen.lake / "nest" / "cameras"
        spark.createDataFrame([(batch, "x")], "id long, more string").write.mode("append").json(str(source))
        stream = spark.readStream.schema(columns).json(str(source)).selectExpr("*", "'2026-01-01' as date")
        writer = stream.writeStream.format("parquet").option("path", str(archive)).partitionBy("date")
        writer.option("checkpointLocation", str(chosen.home / "checkpoint")).trigger(availableNow=True).start().awaitTermination()
    return chosen


@pytest.fixture
def ask(spark, settings):
    def asked(sql, limit=1000):
        return answer(spark, sql, tables(settings), limit)

    return asked


def test_rows_in_their_types(ask):
    found = ask("select id, at, fare, named_struct('a', map('k', id)) as s from trips where id = 3")
    assert found.columns == ["id", "at", "fare", "s"]
    assert found.rows == [[3, AT, Decimal("1.10"), {"a": {"k": 3}}]]
    assert not found.is_cut


def test_both_formats_in_one_query_and_columns_that_older_files_lack(ask):
    found = ask("with c as (select * from nest_cameras) select c.id, c.more, date, fare from c join TRIPS using (id) order by id")
    assert [[number, more, str(date)] for number, more, date, _ in found.rows] == [[0, None, "2026-01-01"], [1, "x", "2026-01-01"]]


def test_the_limit_says_that_there_is_more(ask):
    assert len(ask("select * from trips", limit=4).rows) == 4
    assert ask("select * from trips", limit=4).is_cut
    assert not ask("select * from trips", limit=5).is_cut


@pytest.mark.parametrize(
    "sql",
    [
        "values (1), (2)",
        "table trips",
        "from trips select id",
        "((select 1))",
        "-- why\n/* how */ select 1 /* x */",
        "WITH a AS (SELECT 1) TABLE a",
    ],
)
def test_all_that_is_a_query_is_taken(ask, sql):
    assert ask(sql).rows


def files_of(folder):
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_columns_of_one_name_stay_apart(ask):
    assert ask("select 1 as a, 2 as a").rows == [[1, 2]]
    assert ask("select 1 as a where false").rows == []


@pytest.mark.parametrize(
    "sql",
    [
        "insert into trips values (1, now(), 1)",
        "with x as (select 1 as id) insert into trips select id, now(), 1 from x",
        "from trips insert into trips select * insert into trips select *",
        "update trips set id = 1",
        "delete from trips",
        "merge into trips using trips as o on trips.id = o.id when matched then delete",
        "drop table trips",
        "drop view trips",
        "create table other as select * from trips",
        "create temporary view trips as select 1",
        "insert overwrite directory '/tmp/never' using csv select 1",
        "optimize trips",
        "vacuum trips",
        "restore table trips to version as of 0",
        "truncate table trips",
        "set spark.sql.ansi.enabled=false",
        "cache table trips",
        "add jar 'x.jar'",
        "describe trips",
        "select transform(id) using 'cat' from trips",
        "/* select */ -- select\n restore table trips to version as of 0",
        "begin drop table trips; end",
    ],
)
def test_anything_but_a_query_is_refused_and_changes_nothing(ask, settings, sql):
    before = files_of(settings.lake)
    with pytest.raises(StreamgaugeError, match="only queries are allowed"):
        ask(sql)
    assert files_of(settings.lake) == before


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("selec 1", r"^Spark cannot parse this SQL: .*Syntax error at or near 'selec'"),
        ("select 1; select 2", r"^Spark cannot parse this SQL: .*Syntax error"),
        ("", r"^Spark cannot parse this SQL: "),
        ("select * from nowhere.trip", r"^no table nowhere.trip; there are nest_cameras, trips$"),
        ("select * from trip", r"^no table trip; there are nest_cameras, trips$"),
        ("select colour from trips", r"^Spark does not take this query: .*colour"),
        ("select 1 / (id - id) from trips", r"^Spark failed to execute this query: .*[Dd]ivision by zero"),
    ],
)
def test_a_mistake_is_one_clear_line(ask, sql, message):
    with pytest.raises(StreamgaugeError, match=message) as told:
        ask(sql)
    assert len(str(told.value).splitlines()) == 1


def test_a_mistake_is_one_line_of_the_command_too(settings):
    assert "no table nowhere" in one_line_error(streamgauge("query", "select * from nowhere", settings=settings))


def test_a_table_without_rows_says_so(ask, settings):
    (settings.lake / "new" / "_spark_metadata").mkdir(parents=True, exist_ok=True)
    (settings.lake / "newer" / "_delta_log").mkdir(parents=True, exist_ok=True)
    for name in ("new", "newer"):
        with pytest.raises(StreamgaugeError, match=rf"table {name} in .* cannot be read: "):
            ask(f"select * from {name}")
        for mark in (settings.lake / name).iterdir():
            mark.rmdir()
        (settings.lake / name).rmdir()


def test_an_archive_with_a_file_deleted_by_hand_is_one_clear_line(ask, settings, tmp_path):
    victim = max((settings.lake / "nest" / "cameras").rglob("*.parquet"))
    kept = victim.rename(tmp_path / victim.name)
    with pytest.raises(StreamgaugeError, match=r"^table nest_cameras in .* cannot be read: ") as told:
        ask("select * from nest_cameras")
    assert len(str(told.value).splitlines()) == 1
    kept.rename(victim)
