"""The archives with each event once: which rows are the same event, and which of them stays."""

import re

import orjson
import pytest
from avro import V1, change, in_wire_format
from messages import refused
from plain import one_camera
from streaming import at, write_table

from infrastructure.settings import Settings
from pipeline.catalog import all_queries
from pipeline.formats.confluent_avro import WriterSchemas
from pipeline.lake.sql_tables import sql_tables
from pipeline.sources.kafka import RECORD_SCHEMA

TEN = int(at("10:00").timestamp())


@pytest.fixture
def distinct(spark):
    """Makes the distinct rows of an archive from the values of records, or from records as (value, partition, offset, timestamp)."""

    def made(query, *values):
        (one,) = (one for one in all_queries(Settings()) if one.name == query)
        given = [value if isinstance(value, tuple) else (value, 0, offset, at("12:00")) for offset, value in enumerate(values)]
        rows = [(None, value, one.source.name, partition, offset, time, time) for value, partition, offset, time in given]
        schemas = WriterSchemas(V1, {3: V1}) if one.subject else None
        return one.sink.distinct(one.transformed(one.decoded(spark.createDataFrame(rows, RECORD_SCHEMA), schemas), Settings()))

    return made


def trip(**fields):
    times = dict.fromkeys(("lpep_pickup_datetime", "lpep_dropoff_datetime"), TEN * 1000)
    return orjson.dumps({**times, "PULocationID": 74, "total_amount": 10.25, **fields})


def avro(number, **fields):
    return in_wire_format(change(number, at=fields.pop("at", TEN), **fields), 3)


def offsets(rows, column="offset"):
    return sorted(row[column] for row in rows.collect())


class TestSightings:
    def test_a_sighting_is_a_camera_and_a_time(self, distinct):
        values = [one_camera("cam-1", at("10:00")), one_camera("cam-2", at("10:00")), one_camera("cam-1", at("10:01"))]
        assert offsets(distinct("nest-archive", *values, *values)) == [0, 1, 2]

    def test_one_that_is_reported_again_on_the_next_day_is_the_same(self, distinct):
        seen = one_camera("cam-1", at("23:59"))
        reports = [(seen, 0, 7, at("23:59")), (seen, 0, 8, at("23:59").replace(day=2))]
        assert offsets(distinct("nest-archive", *reports)) == [7]

    def test_a_person_who_is_seen_only_in_a_later_report_counts(self, distinct):
        motion, person = one_camera("cam-1", at("10:00")).replace(b"true", b"false"), one_camera("cam-1", at("10:00"))
        assert offsets(distinct("nest-archive", motion, person)) == [1]

    def test_a_camera_that_saw_nobody_or_at_no_time_has_no_sighting(self, distinct):
        timeless = b'{"devices": {"cameras": {"cam-1": {"last_event": {"has_person": true}}, "cam-2": {}}}}'
        assert offsets(distinct("nest-archive", timeless)) == []


class TestDevices:
    def test_a_device_is_once_for_each_time_it_was_connected(self, distinct):
        def thermostat(time, name="t1"):
            return orjson.dumps({"devices": {"thermostats": {name: {"last_connection": at(time)}}}})

        values = [thermostat("10:00"), thermostat("10:00"), thermostat("10:01"), thermostat("10:00", "t2")]
        assert offsets(distinct("nest-devices-archive", *values)) == [0, 2, 3]

    def test_the_same_id_in_two_types_is_two_devices_and_one_without_a_time_is_no_event(self, distinct):
        connected = {"d1": {"last_connection": at("10:00")}}
        types = {"thermostats": connected, "doorbells": {**connected, "d2": {"rings": 3}}}
        assert offsets(distinct("nest-devices-archive", orjson.dumps({"devices": types}))) == [0, 0]


class TestTrips:
    def test_the_first_record_stays_whatever_the_order_of_the_rows(self, distinct):
        reports = [(trip(), 1, 2, at("12:00")), (trip(), 0, 9, at("12:00")), (trip(), 1, 1, at("12:00"))]
        (row,) = distinct("taxi-archive", *reports).collect()
        assert (row["partition"], row.offset) == (0, 9)

    @pytest.mark.parametrize("other", [{"lpep_pickup_datetime": 0}, {"total_amount": 10.26}, {"ehail_fee": 0}, {"PULocationID": None}])
    def test_a_trip_that_differs_in_one_column_is_another(self, distinct, other):
        assert offsets(distinct("taxi-archive", trip(), trip(**other), trip())) == [0, 1]


class TestChanges:
    def test_a_change_is_its_id_and_time(self, distinct):
        values = [avro(1), avro(2), avro(1, at=TEN + 1), avro(1), avro(3, kind="log"), avro(3, kind="log")]
        assert offsets(distinct("wikimedia-archive", *values), "kafka_offset") == [0, 1, 2, 4]

    def test_changes_without_an_id_stay_apart(self, distinct):
        values = [avro(1, meta={"id": text, "dt": "", "domain": "", "offset": 0}) for text in ("", "")]
        assert offsets(distinct("wikimedia-archive", *values), "kafka_offset") == [0, 1]

    def test_no_filter_names_every_text_of_a_change(self, distinct, capsys):
        """Spark's constraint propagation doubles such a filter for each text that is a column."""
        distinct("wikimedia-archive", avro(1)).explain()
        conditions = re.findall(r"Filter (.*)", capsys.readouterr().out)
        assert conditions
        assert not [one for one in conditions if "concat_ws" in one]


@pytest.mark.parametrize("archive", ["taxi-archive-delta", "wikimedia-archive-delta"])
def test_a_condition_on_the_date_reads_its_days_only(spark, distinct, tmp_path, archive, capsys):
    values = {"taxi-archive-delta": [trip()], "wikimedia-archive-delta": [avro(1)]}
    distinct(archive, *values[archive]).write.partitionBy("date").parquet(str(tmp_path / "archive"))
    (query,) = (one for one in all_queries(Settings()) if one.name == archive)
    query.sink.distinct(spark.read.parquet(str(tmp_path / "archive"))).where("date = '2026-01-01'").explain()
    assert "PartitionFilters: [isnotnull(date" in capsys.readouterr().out


class TestTables:
    @pytest.fixture
    def settings(self, spark, tmp_path):
        """A lake where the folder of an archive holds something else."""
        chosen = Settings(home=tmp_path)
        write_table(spark.range(1), chosen.lake / "nest" / "cameras")
        return chosen

    def test_another_table_in_the_folder_of_an_archive_is_one_clear_line(self, spark, settings):
        (view,) = (table for table in sql_tables(settings) if table.format == "view")
        assert view.name == "nest_cameras_distinct"
        with refused("nest_cameras", "last_event"):
            view.rows(spark)

    def test_a_folder_of_the_same_name_is_told(self, settings):
        (settings.lake / "nest" / "cameras_distinct" / "_spark_metadata").mkdir(parents=True)
        with refused("cameras_distinct", "table nest_cameras_distinct", "rename the folder"):
            sql_tables(settings)
