"""Reading TLC's Parquet files: whatever the month's types are, in order of drop-off."""

import json
import struct
from datetime import UTC, datetime, timedelta

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from messages import refused

from producers.taxi.files import file_at
from producers.taxi.stream import replay
from producers.taxi.trips import TRIP

EIGHT = datetime(2024, 3, 1, 8)  # noqa: DTZ001 - TLC's times have no zone
EIGHT_MS = int(EIGHT.replace(tzinfo=UTC).timestamp()) * 1000


@pytest.fixture
def tlc_file(tmp_path):
    """Writes columns, each a list or an Arrow array; the essential ones have values if they are not given. Returns the path."""

    def write(rows=1, row_group_size=None, **columns):
        ended = [EIGHT + timedelta(minutes=number) for number in range(rows)]
        essential = {
            "lpep_pickup_datetime": pa.array([EIGHT] * rows, pa.timestamp("us")),
            "lpep_dropoff_datetime": pa.array(ended, pa.timestamp("us")),
            "PULocationID": pa.array([74] * rows, pa.int32()),
        }
        path = tmp_path / "green_tripdata_2024-03.parquet"
        pq.write_table(pa.table(essential | columns), path, row_group_size=row_group_size)
        return path

    return write


def trips(path, **options):
    """The records as a JSON reader that knows no NaN sees them."""

    def refuse(constant):
        pytest.fail(f"{constant} is not JSON")

    return [json.loads(event.value, parse_constant=refuse) for event in replay(path, pytest.fail, **options)]


def ended(*minutes):
    times = [None if minute is None else EIGHT + timedelta(minutes=minute) for minute in minutes]
    return pa.array(times, pa.timestamp("us"))


def test_a_trip_has_all_columns_in_tlcs_order_and_the_missing_ones_are_null(tlc_file):
    (trip,) = trips(tlc_file(trip_distance=[1.5]))
    known = {"lpep_pickup_datetime": EIGHT_MS, "lpep_dropoff_datetime": EIGHT_MS, "PULocationID": 74, "trip_distance": 1.5}
    assert trip == dict.fromkeys(TRIP.names) | known
    assert list(trip) == TRIP.names


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_in_any_unit(tlc_file, unit):
    (trip,) = trips(tlc_file(lpep_pickup_datetime=pa.array([EIGHT], pa.timestamp(unit))))
    assert trip["lpep_pickup_datetime"] == EIGHT_MS


def test_a_time_with_a_zone_is_what_the_clock_showed_there(tlc_file):
    at_one_utc = pa.array([EIGHT + timedelta(hours=5)], pa.timestamp("us", tz="America/New_York"))
    (trip,) = trips(tlc_file(lpep_pickup_datetime=at_one_utc))
    assert trip["lpep_pickup_datetime"] == EIGHT_MS


@pytest.mark.parametrize("text", ["2024-03-01 08:00:00", "2024-03-01T08:00:00Z", "2024-03-01T08:00", "2024-03-01 08:00:00.000000"])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_times_as_text(tlc_file, text, kind):
    (trip,) = trips(tlc_file(lpep_dropoff_datetime=pa.array([text]).cast(kind)))
    assert trip["lpep_dropoff_datetime"] == EIGHT_MS


@pytest.mark.parametrize("year", [1, 1969, 2090, 9999])
@pytest.mark.parametrize("int96", [False, True])
def test_times_of_any_year(tlc_file, year, int96):
    time = datetime(year, 3, 1, 8)  # noqa: DTZ001
    path = tlc_file(lpep_pickup_datetime=pa.array([time], pa.timestamp("us")))
    pq.write_table(pq.read_table(path), path, use_deprecated_int96_timestamps=int96)
    assert trips(path)[0]["lpep_pickup_datetime"] == (time - datetime(1970, 1, 1)) / timedelta(milliseconds=1)  # noqa: DTZ001


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([74], pa.int64()),
        pa.array([74], pa.int32()),
        pa.array([74], pa.int16()),
        pa.array([74], pa.uint8()),
        pa.array([74.0], pa.float64()),
        pa.array([74], pa.decimal128(5, 0)),
        pa.array(["74"]),
        pa.array(["74"], pa.large_string()),
        pa.array(["74"]).dictionary_encode(),
    ],
    ids=lambda ids: str(ids.type),
)
def test_an_id_of_any_type_is_an_integer(tlc_file, ids):
    (event,) = replay(tlc_file(PULocationID=ids), pytest.fail)
    assert (event.key, b'"PULocationID":74,' in event.value) == (b"74", True)


def test_a_code_that_is_a_double_is_an_integer_and_nan_in_it_null(tlc_file):
    codes = [trip["RatecodeID"] for trip in trips(tlc_file(rows=3, RatecodeID=pa.array([2.0, float("nan"), None])))]
    assert codes == [2, None, None]
    assert isinstance(codes[0], int)


def test_amounts_are_numbers_and_what_is_none_is_null(tlc_file):
    amounts = pa.array([12.5, float("nan"), float("inf"), -float("inf"), None])
    assert [trip["fare_amount"] for trip in trips(tlc_file(rows=5, fare_amount=amounts))] == [12.5, None, None, None, None]


@pytest.mark.parametrize("amounts", [pa.array([7], pa.int64()), pa.array(["7.00"]), pa.array([7], pa.decimal128(9, 2)), pa.array([7.0], pa.float32())])  # fmt: skip
def test_an_amount_of_any_type(tlc_file, amounts):
    assert trips(tlc_file(tolls_amount=amounts))[0]["tolls_amount"] == 7.0


@pytest.mark.parametrize("fees", [pa.nulls(1), pa.nulls(1, pa.float64()), pa.nulls(1, pa.int32())], ids=lambda fees: str(fees.type))
def test_a_column_without_values(tlc_file, fees):
    assert trips(tlc_file(ehail_fee=fees))[0]["ehail_fee"] is None


def test_unknown_columns_are_told_once_and_left_out(tlc_file):
    notices = []
    events = list(replay(tlc_file(rows=3, cbd_congestion_fee=[0.75] * 3, airport_fee=[0.0] * 3), notices.append))
    (notice,) = notices
    assert "not known, and are left out: cbd_congestion_fee, airport_fee" in notice
    assert not any(b"cbd" in event.value for event in events)


def test_unknown_columns_are_one_line_however_many_they_are(tlc_file):
    notices = []
    list(replay(tlc_file(**{"line\nbreak": [1]}, **{f"column_{number}": [1] for number in range(99)}), notices.append))
    (notice,) = notices
    assert notice.endswith("line break, " + ", ".join(f"column_{number}" for number in range(29)) + " and 70 more")


@pytest.mark.parametrize("twice", ["fare_amount", "PULocationID"])
def test_a_known_column_that_is_there_twice_is_refused_at_once(twice, tlc_file):
    path = tlc_file(fare_amount=[1.0])
    table = pq.read_table(path)
    pq.write_table(table.append_column(twice, table[twice]), path)
    with refused(f"more than one column {twice}"):
        replay(path, pytest.fail)


@pytest.mark.parametrize("missing", ["lpep_pickup_datetime", "lpep_dropoff_datetime", "PULocationID"])
def test_a_missing_essential_column_is_named_at_once_with_those_that_are_there(tlc_file, missing):
    path = tlc_file(tip_amount=[1.0])
    pq.write_table(pq.read_table(path).drop_columns([missing]), path)
    with refused(f" {missing}", "tip_amount"):
        replay(path, pytest.fail)


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("DOLocationID", ["here"], ("string", "int64")),
        ("passenger_count", [1.5], ("double", "int64")),
        ("lpep_pickup_datetime", [5], ("int64", "timestamp")),
        ("lpep_dropoff_datetime", ["noon"], ("string", "timestamp", "found 'noon'")),
        ("lpep_dropoff_datetime", ["2024-03-01"], ("string", "timestamp", "found '2024-03-01'")),
        ("lpep_dropoff_datetime", ["2024-03-01 08:00:00", "03/01/2024 08:00:00 AM"], ("string", "found '03/01/2024")),
        ("lpep_dropoff_datetime", ["2024-03-01T08:00:00+05:00"], ("string", "found '2024-03-01T08:00:00+05:00'")),
        ("lpep_dropoff_datetime", ["2024-02-30 08:00:00"], ("string", "timestamp")),
        ("lpep_dropoff_datetime", [EIGHT.date()], ("date32", "neither timestamps nor text")),
        ("lpep_dropoff_datetime", [EIGHT.time()], ("time64", "neither timestamps nor text")),
        ("tip_amount", [[1.0]], ("list", "double")),
        ("store_and_fwd_flag", [{"a": 1}], ("struct", "string")),
    ],
)
def test_a_column_that_does_not_hold_what_its_name_says_is_named(tlc_file, column, values, said):
    with refused(f"column {column}", *said):
        list(replay(tlc_file(rows=len(values), **{column: values}), pytest.fail))


@pytest.mark.parametrize("row_group_size", [None, 1, 3])
def test_rows_come_in_order_of_drop_off_whatever_the_row_groups(tlc_file, row_group_size):
    minutes = [3, 1, 1440, 2, 0, 5, 4]
    path = tlc_file(rows=7, row_group_size=row_group_size, lpep_dropoff_datetime=ended(*minutes), VendorID=list(range(7)))
    assert [trip["VendorID"] for trip in trips(path)] == [4, 1, 3, 0, 6, 5, 2]


def test_rows_of_one_moment_keep_the_order_of_the_file(tlc_file):
    path = tlc_file(rows=500, lpep_dropoff_datetime=ended(*[0] * 500), VendorID=list(range(500)))
    assert [trip["VendorID"] for trip in trips(path)] == list(range(500))


def test_a_trip_without_drop_off_time_is_sent_last_at_the_time_of_the_one_before_and_is_unusable(tlc_file):
    events = list(replay(tlc_file(rows=3, lpep_dropoff_datetime=ended(None, 2, 1)), pytest.fail))
    assert [(event.event_time_ms - EIGHT_MS, event.is_usable) for event in events] == [(60_000, True), (120_000, True), (120_000, False)]
    assert json.loads(events[2].value)["lpep_dropoff_datetime"] is None


def test_a_trip_without_a_zone_has_no_key(tlc_file):
    (event,) = replay(tlc_file(PULocationID=pa.nulls(1, pa.int32())), pytest.fail)
    assert (event.key, event.is_usable) == (None, True)


@pytest.mark.parametrize(("limit", "count"), [(0, 0), (2, 2), (9, 5), (None, 5)])
def test_a_limit_ends_the_replay(tlc_file, limit, count):
    assert len(trips(tlc_file(rows=5), limit=limit)) == count


def test_a_file_without_rows_has_no_trips(tlc_file):
    assert trips(tlc_file(rows=0)) == []


def test_a_missing_file_and_a_folder_are_told_at_once_by_name(tmp_path):
    with refused("nothing.parquet", "No such file or directory"):
        replay(tmp_path / "nothing.parquet", pytest.fail)
    with refused(str(tmp_path), "directory"):
        replay(tmp_path, pytest.fail)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"VendorID,lpep_pickup_datetime\n2,2024-03-01\n", b"\x00" * 10_000])
def test_what_is_no_parquet_is_told_at_once_in_one_line(tmp_path, content):
    path = tmp_path / "rubbish.parquet"
    path.write_bytes(content)
    with refused("rubbish.parquet", "Parquet") as raised:
        replay(path, pytest.fail)
    assert "\n" not in str(raised.value)


def test_a_truncated_file_is_told_at_once(tlc_file):
    path = tlc_file(rows=1000)
    path.write_bytes(path.read_bytes()[:-100])
    with refused(".parquet", "Parquet"):
        replay(path, pytest.fail)


def test_a_page_that_is_not_what_its_checksum_says_is_told(tlc_file):
    path = tlc_file(trip_distance=[1.5])
    plain = {"compression": "none", "use_dictionary": False, "write_statistics": False, "write_page_checksum": True}
    pq.write_table(pq.read_table(path), path, **plain)
    value = struct.pack("<d", 1.5)
    path.write_bytes(path.read_bytes().replace(value, struct.pack("<d", 2.5)))
    with refused(".parquet", "checksum"):
        list(replay(path, pytest.fail))


def test_damage_in_the_middle_is_told_when_it_is_met(tlc_file):
    path = tlc_file(rows=1000)
    content = bytearray(path.read_bytes())
    content[4:300] = b"\xff" * 296
    path.write_bytes(content)
    with refused(".parquet", "Parquet"):
        list(replay(path, pytest.fail))


def test_a_file_in_an_object_store_is_read_as_one_on_disk(tlc_file, store):
    path = tlc_file(3)
    store.client.upload_file(str(path), "bucket", "tlc/march.parquet")
    assert trips(file_at("s3://bucket/tlc/march.parquet", store.address)) == trips(path)


def test_a_file_that_an_object_store_does_not_have_is_one_clear_line(store):
    with refused("s3://bucket/none.parquet", "NotFound"):
        trips(file_at("s3://bucket/none.parquet", store.address))


@pytest.mark.parametrize(
    "uri", ["nowhere://bucket/a.parquet", "hdfs://127.0.0.1:9/a.parquet", "https://name:secret@127.0.0.1:9/a.parquet?signature=secret"]
)
def test_a_uri_that_cannot_be_read_is_one_clear_line_without_its_secrets(uri):
    with refused(uri.partition("://")[0], "a.parquet") as raised:
        trips(file_at(uri))
    assert "secret" not in str(raised.value)


def test_a_file_with_wrong_columns_is_named_without_the_signature_of_its_url(tmp_path):
    pq.write_table(pa.table({"VendorID": [1]}), tmp_path / "a.parquet")
    fsspec.filesystem("memory").pipe("/bucket/a.parquet?signature=secret", (tmp_path / "a.parquet").read_bytes())
    with refused("memory://bucket/a.parquet", "lacks the columns") as raised:
        trips(file_at("memory://bucket/a.parquet?signature=secret"))
    assert "secret" not in str(raised.value)


def test_text_that_is_not_utf_8_is_one_line(tlc_file):
    text = pa.array([b"\xff"]).view(pa.string())
    with refused("green_tripdata_2024-03.parquet", "UTF8"):
        trips(tlc_file(store_and_fwd_flag=text))
