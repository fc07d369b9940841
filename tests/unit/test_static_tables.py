"""Static tables from the user's own files: which are read, and that the audit reads the same."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import web_server
from messages import refused
from object_store import ObjectStore

from audit.continuous.store import rules
from audit.recount.recount import opened
from contract.static_tables import VARIABLE, files_of
from infrastructure.settings import Settings

HEAD = "device_id,zip_code\n"


@pytest.fixture
def cameras(tmp_path):
    """A folder with two files of cameras, and one of something else."""
    folder = tmp_path / "cameras"
    folder.mkdir()
    for name, text in {"1.csv": f"{HEAD}mine,01234\n", "2.csv": "zip_code,device_id\nN/A,yours\n", "notes.txt": "none"}.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def own(tmp_path):
    """The settings with a place for device_locations."""
    return lambda place, **more: Settings.from_environment(
        {"STREAMGAUGE_HOME": str(tmp_path / "home"), VARIABLE: f"device_locations={place}", **more}
    )


def read(settings):
    """The text of each file of the table."""
    return [path.read_text() for path in files_of("device_locations", settings)]


@pytest.mark.parametrize(("place", "files"), [("", [1, 2]), ("/", [1, 2]), ("/*.csv", [1, 2]), ("/[2-9].csv", [2]), ("/1.csv", [1])])
def test_a_file_a_folder_or_a_pattern(own, cameras, place, files):
    assert (
        read(own(f"{cameras}{place}"))
        == read(own(f"file://{cameras}{place}"))
        == [(cameras / f"{number}.csv").read_text() for number in files]
    )


def test_the_same_in_an_object_store(own, cameras, store: ObjectStore):
    for path in cameras.iterdir():
        store.client.put_object(Bucket="bucket", Key=f"cameras/{path.name}", Body=path.read_bytes())
    one, two = ((cameras / name).read_text() for name in ("1.csv", "2.csv"))
    for place, texts in {"": [one, two], "/*.csv": [one, two], "/2.csv": [two]}.items():
        assert read(own(f"s3a://bucket/cameras{place}", AWS_ENDPOINT_URL=store.address)) == texts
    with refused(VARIABLE, "no file is at s3a://bucket/none"):
        read(own("s3a://bucket/none", AWS_ENDPOINT_URL=store.address))


def test_a_file_at_a_web_address_is_fetched_each_time(own, cameras):
    with web_server.files(cameras) as address:
        settings = own(f"{address}/1.csv")
        assert read(settings) == [f"{HEAD}mine,01234\n"]
        (cameras / "1.csv").write_text(f"{HEAD}mine,99999\n")
        assert read(settings) == [f"{HEAD}mine,99999\n"]
        with refused(VARIABLE, "none.csv", "HTTP 404") as raised:
            read(own(f"{address}/none.csv?signature=s3cret"))
        assert "s3cret" not in str(raised.value)
    with refused(VARIABLE, "http://192.0.2.400/1.csv", "Invalid IPv4 address"):
        read(own("http://192.0.2.400/1.csv"))


@pytest.fixture
def parquet(cameras):
    """A third file of cameras, as Parquet. Its zip codes are numbers, and columns are there that no CSV has."""
    columns = {
        "zip_code": [94107, None],
        "device_id": pa.array(['of, "the" shop', "attic"]).dictionary_encode(),
        "tags": [["a"], []],
        "photo": [b"\xff", b""],
    }
    pq.write_table(pa.table(columns), cameras / "3.parquet")
    return cameras / "3.parquet"


def test_the_audit_reads_parquet_and_csv_as_one_table(own, parquet):
    rows = opened(settings=own(parquet.parent)).execute("SELECT device_id, zip_code FROM device_locations ORDER BY 1").fetchall()
    assert rows == [("attic", ""), ("mine", "01234"), ('of, "the" shop', "94107"), ("yours", "N/A")]
    assert len(opened(settings=own(f"{parquet.parent}/*.parquet")).execute("FROM device_locations").fetchall()) == 2


def test_parquet_from_a_web_address_and_an_object_store(own, cameras, parquet, store: ObjectStore):
    store.client.put_object(Bucket="bucket", Key="parquet/1.parquet", Body=parquet.read_bytes())
    read_here = read(own(parquet))
    with web_server.files(cameras) as address:
        assert read(own(f"{address}/3.parquet")) == read_here
    assert read(own("s3a://bucket/parquet", AWS_ENDPOINT_URL=store.address)) == read_here


def test_of_two_columns_with_one_name_the_first_is_read_as_in_csv(own, tmp_path):
    texts = {"device_id": ["a"], "zip_code": ["1"], "ZIP": ["2"]}
    pq.write_table(pa.table(texts).rename_columns(["device_id", "zip_code", "zip_code"]), tmp_path / "own.parquet")
    (tmp_path / "own.csv").write_text(f"{HEAD.strip()},zip_code\na,1,2\n")
    for name in ("own.parquet", "own.csv"):
        rows = opened(settings=own(tmp_path / name)).execute("SELECT device_id, zip_code FROM device_locations").fetchall()
        assert rows == [("a", "1")]


def test_a_folder_has_files_whose_names_end_in_capitals_too(own, cameras, store: ObjectStore):
    (cameras / "2.csv").rename(cameras / "2.CSV")
    texts = [(cameras / name).read_text() for name in ("1.csv", "2.CSV")]
    assert read(own(cameras)) == texts
    for path in cameras.iterdir():
        store.client.put_object(Bucket="bucket", Key=f"capitals/{path.name}", Body=path.read_bytes())
    assert read(own("s3a://bucket/capitals", AWS_ENDPOINT_URL=store.address)) == texts


def test_what_is_read_again_takes_no_more_space(own, parquet):
    with web_server.files(parquet.parent) as address:
        settings = own(f"{address}/3.parquet")
        texts = [read(settings) for _ in range(3)]
    assert texts[1:] == texts[:-1]
    assert sorted(path.suffix for path in settings.home.rglob("*-*")) == [".csv", ".parquet"]


def test_a_table_that_changes_leaves_the_files_of_running_queries_as_they_are(own, tmp_path):
    """Spark reads a file up to the length that it had at the start of the query."""
    with web_server.files(tmp_path) as address:
        settings, table = own(f"{address}/own.csv"), tmp_path / "own.csv"
        table.write_text(f"{HEAD}mine,01234\n")
        (before,) = files_of("device_locations", settings)
        table.write_text(f"{HEAD}mine,01234\nyours,56789\n")
        assert read(settings) == [table.read_text()]
        assert before.read_text() == f"{HEAD}mine,01234\n"


def test_what_is_no_parquet_is_one_line(own, tmp_path):
    (tmp_path / "own.parquet").write_text(HEAD)
    with refused(VARIABLE, "own.parquet cannot be read", "expected Parquet"):
        read(own(tmp_path / "own.parquet"))


def test_a_table_that_is_not_named_stays(own, cameras):
    assert files_of("taxi_zone_lookup", own(cameras))[0].name == "taxi_zone_lookup.csv"


def test_the_audit_recounts_with_them(own, cameras):
    settings = own(cameras)
    rows = opened(settings=settings).execute("SELECT device_id, zip_code FROM device_locations ORDER BY device_id").fetchall()
    assert rows == [("mine", "01234"), ("yours", "N/A")]
    known = rules(settings)
    (cameras / "1.csv").write_text(f"{HEAD}mine,99999\n")
    assert rules(settings) != known


def test_one_clear_line_for_what_cannot_be_followed(own, tmp_path):
    with refused(VARIABLE, f"no file is at {tmp_path}/none", "device_locations"):
        read(own(f"{tmp_path}/none"))
    with refused("no static table", "taxi_zones", "taxi_zone_lookup"):
        read(own("/a.csv taxi_zones=/b.csv"))
    for wrong in ("", "/a.csv device_locations=/b.csv", "/a.csv /b.csv", "https://user:password@host/a.csv"):
        with refused(VARIABLE, "TABLE=PLACE"):
            own(wrong)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("#a,1\nb,2#c\n", [("#a", "1"), ("b", "2#c")]),
        ("a,1,\nb,2,\n", [("a", "1"), ("b", "2")]),
        ("a\nb,2\n", [("a", ""), ("b", "2")]),
        ('"a ""b"", c",1\n', [('a "b", c', "1")]),
        ("a;b,1|2\n", [("a;b", "1|2")]),
        ("\\0,NA\n", [("\\0", "NA")]),
    ],
)
def test_the_audit_guesses_no_other_format(own, tmp_path, text, rows):
    (tmp_path / "own.csv").write_text(HEAD + text)
    read_rows = (
        opened(settings=own(tmp_path / "own.csv")).execute("SELECT device_id, zip_code FROM device_locations ORDER BY ALL").fetchall()
    )
    assert read_rows == rows


def test_a_file_that_the_audit_cannot_read_is_one_line(own, tmp_path):
    (tmp_path / "own.csv").write_bytes(f"{HEAD}\xe4,1\n".encode("latin-1"))
    with refused("static table device_locations cannot be read", "expected CSV in UTF-8"):
        opened(settings=own(tmp_path / "own.csv"))


@pytest.mark.parametrize(
    ("table", "texts", "words"),
    [
        (
            "device_locations",
            ["device_id,zip\na,1\n"],
            ["device_locations lacks zip_code", "device_id, zip;", "expected device_id, zip_code"],
        ),
        ("device_locations", [HEAD, "device_id\na\n"], ["device_locations lacks zip_code", "1.csv"]),
        ("device_locations", ["Device_ID,zip_code\na,1\n"], ["lacks device_id"]),
        ("device_locations", [""], ["static table device_locations"]),
        ("device_locations", [f"{HEAD}a,1\n", f"{HEAD}a,2\n"], ["device_id 'a' is there more than once"]),
        ("taxi_zone_lookup", ["LocationID,Borough,Zone\nJFK,Queens,Airport\n"], ["LocationID 'JFK' is no number"]),
    ],
)
def test_the_audit_refuses_what_the_queries_refuse_and_says_what_is_missing(own, tmp_path, table, texts, words):
    (tmp_path / "own").mkdir()
    for number, text in enumerate(texts):
        (tmp_path / "own" / f"{number}.csv").write_text(text)
    settings = replace(own(tmp_path / "own"), static_tables=f"{table}={tmp_path}/own")
    with refused(*words):
        opened(settings=settings)
