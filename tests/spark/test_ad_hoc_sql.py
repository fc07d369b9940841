"""Ad-hoc SQL over real tables: of archives that streams have written."""

import csv
import io
import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from running import one_line_error, streamgauge
from streaming import write_table

from infrastructure.errors import StreamgaugeError
from infrastructure.output.row_formats import as_csv, as_json, as_table
from infrastructure.settings import Settings
from pipeline.lake.ad_hoc_sql import answer
from pipeline.lake.tables import tables

AT = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def settings(spark, tmp_path_factory):
    """A lake with table `trips` and archive `nest_cameras`, whose files of the second batch have a column more."""
    chosen = Settings(home=tmp_path_factory.mktemp("home"))
    rows = spark.createDataFrame([(number, AT, Decimal("1.10")) for number in range(5)], "id long, at timestamp, fare decimal(12,2)")
    write_table(rows, chosen.lake / "trips")
    archive(spark, chosen.home, ["id long", "id long, more string"])
    return chosen


def archive(spark, home, batches):
    """Writes archive `nest_cameras` with a file for each batch, of those columns."""
    for batch, columns in enumerate(batches):
        source, folder = home / "source", Settings(home=home).lake / "nest" / "cameras"
        spark.createDataFrame([(batch, "x")], "id long, more string").write.mode("append").json(str(source))
        stream = spark.readStream.schema(columns).json(str(source)).selectExpr("*", "'2026-01-01' as date")
        writer = stream.writeStream.format("parquet").option("path", str(folder)).partitionBy("date")
        writer.option("checkpointLocation", str(home / "checkpoint")).trigger(availableNow=True).start().awaitTermination()


@pytest.fixture
def ask(spark, settings):
    def asked(sql, limit=1000):
        return answer(spark, sql, tables(settings), limit)

    return asked


def test_rows_in_their_types(ask):
    found = ask("select id, at, fare, named_struct('a', map('k', id)) as s from trips where id = 3")
    assert found.columns == ["id", "at", "fare", "s"]
    assert found.rows == [[3, "2026-01-01T12:00:00Z", Decimal("1.10"), {"a": {"k": 3}}]]
    assert not found.is_cut


def test_both_tables_in_one_query_and_columns_that_older_files_lack(ask):
    found = ask("with c as (select * from nest_cameras) select c.id, c.more, date, fare from c join TRIPS using (id) order by id")
    assert [[number, more, str(date)] for number, more, date, _ in found.rows] == [[0, None, "2026-01-01"], [1, "x", "2026-01-01"]]


def test_numbers_that_have_become_wider_in_newer_files(spark, tmp_path):
    home = tmp_path / "a home"
    archive(spark, home, ["id int", "id long, more string", "id long, more string"])
    found = answer(spark, "select id, more, date from nest_cameras order by id", tables(Settings(home=home)), 10)
    assert [[number, more, str(date)] for number, more, date in found.rows] == [
        [0, None, "2026-01-01"],
        [1, "x", "2026-01-01"],
        [2, "x", "2026-01-01"],
    ]


def test_the_limit_says_that_there_is_more(ask):
    assert len(ask("select * from trips", limit=4).rows) == 4
    assert ask("select * from trips", limit=4).is_cut
    for limit in (5, 2**31 - 1, 10**30):
        assert not ask("select * from trips", limit=limit).is_cut


@pytest.mark.parametrize(
    "sql",
    [
        "values (1), (2)",
        "table trips",
        "from trips select id",
        "((select 1))",
        "-- why\n/* how */ select 1 /* x */",
        "WITH a AS (SELECT 1) TABLE a",
        "with recursive r(n) as (select 1 union all select n + 1 from r where n < 3) select * from r",
        "from trips |> where id > 1 |> select id |> order by id |> limit 1",
        "select id, sum(id) over (order by id), explode(array(1, 2)) from trips where id in (select max(id) from trips)",
        "select fare, count(*) from trips group by grouping sets ((fare), ()) having count(*) > 0 order by all limit 3 offset 1",
        "select * from (select id, fare from trips) pivot (max(fare) for id in (1, 2))",
        "select * from (select 1 as a, 2 as b) unpivot (v for n in (a, b))",
        "select /*+ broadcast(o) */ * from trips join trips as o using (id), lateral (select trips.id + 1 as j) lateral view explode(array(1)) as e",
        "select id from trips union select id from nest_cameras except select 7 intersect select 7",
        "select * from range(3) where exists (select * from trips tablesample (100 percent))",
        "select distinct * except (at) from trips cluster by id",
        "select count(*) from identifier('trips')",
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
        pytest.param("optimize trips", marks=pytest.mark.delta),
        pytest.param("vacuum trips", marks=pytest.mark.delta),
        pytest.param("restore table trips to version as of 0", marks=pytest.mark.delta),
        "truncate table trips",
        "set spark.sql.ansi.enabled=false",
        "cache table trips",
        "add jar 'x.jar'",
        "describe trips",
        "select transform(id) using 'cat' from trips",
        pytest.param("/* select */ -- select\n restore table trips to version as of 0", marks=pytest.mark.delta),
        "begin drop table trips; end",
        "begin select 1; end",
        "explain select 1",
        "show tables",
        "execute immediate 'select 1'",
        pytest.param("/* a */ restore table trips to version as of 0 -- */ select 1", marks=pytest.mark.delta),
        "with x as (select transform(a) using 'cat' as (b string) from values (1) as t(a)) select * from x",
        "select * from trips where id in (select transform(a) using 'cat' as (b bigint) from values (1) as t(a))",
        "select (select transform(a) using 'cat' as (b string) from values (1) as t(a))",
    ],
)
def test_anything_but_a_query_is_refused_and_changes_nothing(ask, settings, sql):
    before = files_of(settings.lake)
    with pytest.raises(StreamgaugeError, match="only queries are allowed"):
        ask(sql)
    assert files_of(settings.lake) == before


@pytest.mark.parametrize(
    "sql",
    [
        "select java_method('java.lang.System', 'getenv', 'HOME')",
        "select * from trips where id = (select length(Reflect('java.lang.System', 'getenv', 'HOME')))",
        "with x as (select system.builtin.try_reflect('java.lang.System', 'getenv', 'HOME')) select * from x",
        "select identifier('reflect')('java.lang.System', 'getenv', 'HOME')",
        "select max(id) over (order by length(java_method('java.lang.System', 'getenv', 'HOME'))) from trips",
        """select from_avro(x'00', '"int"', map('avroSchemaUrl', 'file:///etc/hostname'))""",
    ],
)
def test_functions_that_reach_beyond_the_tables_are_refused(ask, sql):
    with pytest.raises(StreamgaugeError, match=r"^a query may only read tables, and .*; this statement was not executed$"):
        ask(sql)


@pytest.mark.parametrize("kind", ["text", "csv", "json", "parquet", "delta", "binaryFile"])
def test_a_path_is_no_table(ask, settings, kind):
    path = settings.lake / "trips"
    with pytest.raises(StreamgaugeError, match=rf"^no table {kind}\.{path}; there are nest_cameras, trips$"):
        ask(f"select * from {kind}.`{path}`")


def test_variables_of_the_environment_are_text(ask):
    assert ask("select '${env:HOME}', '${spark.app.name}'").rows == [["${env:HOME}", "${spark.app.name}"]]


SHOWN = {
    "timestamp '2026-01-01 12:00:00.5'": "2026-01-01T12:00:00.5Z",
    "timestamp '+290308-12-21 19:59:05'": "+290308-12-21T19:59:05Z",
    "timestamp '-0044-03-15 00:00:00'": "-0044-03-15T00:00:00Z",
    "timestamp_ntz '+10000-01-01 00:00:00'": "+10000-01-01T00:00:00",
    "date '+12345-01-01'": "+12345-01-01",
    "date '2026-01-01'": "2026-01-01",
    "interval '1 02:03:04' day to second": "INTERVAL '1 02:03:04' DAY TO SECOND",
    "interval '1-2' year to month": "INTERVAL '1-2' YEAR TO MONTH",
    "make_interval(1, 2, 3)": "1 years 2 months 21 days",
    "double('NaN')": "NaN",
    "double('-Infinity')": "-Infinity",
    "float('Infinity')": "Infinity",
    "cast(X'61ff' as string)": "a\ufffd",
    "X'00ff'": "AP8=",
    """parse_json('{"a":[1,null]}')""": '{"a":[1,null]}',
    "'x'": "x",
    "9223372036854775807": 9223372036854775807,
    "cast('99999999999999999999999999999999999999' as decimal(38,0))": Decimal("99999999999999999999999999999999999999"),
    "cast(0 as decimal(38,18))": Decimal("0.000000000000000000"),
    "1.5d": 1.5,
    "true": True,
    "null": None,
}
"""What a query returns, and what is shown of it."""


@pytest.mark.parametrize(
    ("wrapped", "found_in"),
    [
        ("{}", lambda shown: shown),
        ("array({0}, null)", lambda shown: [shown, None]),
        ("named_struct('a b', {0}, 'none', null)", lambda shown: {"a b": shown, "none": None}),
        ("map('k', array({0}))", lambda shown: {"k": [shown]}),
    ],
    ids=["alone", "in an array", "in a struct", "in a map"],
)
def test_every_value_that_spark_has_can_be_shown_in_each_format(ask, wrapped, found_in):
    found = ask(f"select {', '.join(wrapped.format(value) for value in SHOWN)}")
    expected = [found_in(shown) for shown in SHOWN.values()]
    columns = [f"c{number}" for number in range(len(expected))]
    (row,) = json.loads(as_json(columns, found.rows), parse_float=Decimal, parse_int=Decimal)
    assert list(row.values()) == expected
    _, cells = csv.reader(io.StringIO(as_csv(columns, found.rows)))
    terminal = [str(*column.cells) for column in as_table(columns, found.rows).columns]
    for cell, shown in [*zip(cells, expected, strict=True), *zip(terminal, expected, strict=True)]:
        assert cell == shown if isinstance(shown, str) else json.loads(cell or "null", parse_float=Decimal, parse_int=Decimal) == shown


def test_keys_of_maps_are_text(ask):
    keys = ["timestamp '+10000-01-01 00:00:00'", "date '2026-01-01'", "1.50", "X'00ff'", "struct(1, 'x')", "true"]
    found = ask(f"select {', '.join(f'map({key}, 1)' for key in keys)}")
    assert found.rows == [[{"+10000-01-01T00:00:00Z": 1}, {"2026-01-01": 1}, {"1.50": 1}, {"AP8=": 1}, {"{1, x}": 1}, {"true": 1}]]


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
    with pytest.raises(StreamgaugeError, match=r"table new in .* cannot be read: "):
        ask("select * from new")
    (settings.lake / "new" / "_spark_metadata").rmdir()
    (settings.lake / "new").rmdir()


@pytest.mark.delta
def test_a_delta_table_and_one_without_rows(spark, tmp_path):
    lake = Settings(home=tmp_path).lake
    (lake / "newer" / "_delta_log").mkdir(parents=True)
    spark.range(3).write.format("delta").save(str(lake / "numbers"))
    held = tables(Settings(home=tmp_path))
    assert answer(spark, "select sum(id) from numbers", held, 10).rows == [[3]]
    with pytest.raises(StreamgaugeError, match=r"table newer in .* cannot be read: "):
        answer(spark, "select * from newer", held, 10)


@pytest.fixture(scope="module")
def versions(spark, tmp_path_factory):
    """Asks a lake with Delta table `orders`, whose versions 0, 1 and 2 have as many rows and one more."""
    settings = Settings(home=tmp_path_factory.mktemp("versions"))
    for number in range(3):
        spark.range(number, number + 1).write.format("delta").mode("append").save(str(settings.lake / "orders"))
    write_table(spark.range(1), settings.lake / "plain")
    return lambda sql: answer(spark, sql, tables(settings), 1000)


@pytest.mark.delta
@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("select count(*) from orders version as of 1", [[2]]),
        ("select count(*) from ORDERS for system_version as of '0' as o where o.id = 0", [[1]]),
        ("select orders.id, '\U0001f600' from `orders` version as of 0", [[0, "\U0001f600"]]),
        (
            "with o as (select * from orders version as of 0) select id from orders where id not in (select id from o) order by id",
            [[1], [2]],
        ),
        ("select id from orders except select id from orders version as of 1", [[2]]),
        ("select count(*) from identifier('orders') version as of 1", [[2]]),
        ("select '\U0001f600', count(*) from orders version as of 0 join orders version as of 2 o", [["\U0001f600", 3]]),
        (
            "select count(*) from orders version as of 2 tablesample (100 percent) o where exists (select 1 from orders version as of 0)",
            [[3]],
        ),
    ],
)
def test_a_delta_table_as_it_was(versions, sql, rows):
    assert versions(sql).rows == rows


@pytest.mark.delta
def test_the_versions_of_a_delta_table_and_what_it_was_at_their_times(versions):
    found = versions("describe history orders")
    assert found.columns == ["version", "timestamp", "operation", "operationParameters", "operationMetrics"]
    assert [[version, operation] for version, _, operation, *_ in found.rows] == [[2, "WRITE"], [1, "WRITE"], [0, "WRITE"]]
    assert len(versions("DESCRIBE HISTORY orders LIMIT 1").rows) == 1
    times = [time for _, time, *_ in found.rows]
    assert [versions(f"select count(*) from orders timestamp as of '{time}'").rows for time in times] == [[[3]], [[2]], [[1]]]


@pytest.mark.delta
@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("select * from plain version as of 1", "plain has no versions; these Delta tables have some: orders"),
        ("describe history plain", "plain has no versions; these Delta tables have some: orders"),
        ("describe history delta.`/tmp/orders`", "delta./tmp/orders has no versions"),
        ("describe history '/tmp/orders'", "has no versions"),
        ("select * from delta.`/tmp/orders` version as of 1", "delta./tmp/orders has no versions"),
        ("select * from orders version as of 7", "table orders cannot be read at 7: "),
        ("select * from orders version as of 'x'", "table orders cannot be read at x: "),
        ("select * from orders timestamp as of '1999-01-01'", "table orders cannot be read at 1999-01-01: "),
        (
            "select * from orders timestamp as of current_timestamp()",
            "expected the time after AS OF as a text, such as '2026-01-31 12:00:00'",
        ),
    ],
)
def test_a_version_that_is_not_there_is_one_clear_line(versions, sql, told):
    with pytest.raises(StreamgaugeError) as error:
        versions(sql)
    assert told in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_without_delta_its_tables_say_what_they_need(spark, tmp_path):
    settings = Settings(home=tmp_path)
    (settings.lake / "newer" / "_delta_log").mkdir(parents=True)
    with pytest.raises(StreamgaugeError, match=r"^table newer needs Delta, .* `make lake`"):
        answer(spark, "select * from newer", tables(settings), 10)


def test_an_archive_with_a_file_deleted_by_hand_is_one_clear_line(ask, settings, tmp_path):
    victim = max((settings.lake / "nest" / "cameras").rglob("*.parquet"))
    kept = victim.rename(tmp_path / victim.name)
    with pytest.raises(StreamgaugeError, match=r"^table nest_cameras in .* cannot be read: ") as told:
        ask("select * from nest_cameras")
    assert len(str(told.value).splitlines()) == 1
    kept.rename(victim)
