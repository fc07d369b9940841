"""The lake and checkpoints in HDFS: a real NameNode and DataNode, on loopback."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hdfs_server import HdfsServer
from kills import lose_last_batch
from plain import one_camera, read_topic, results, write_topic
from running import done, environment, eventually, one_line_error, running_queries, streamgauge, verdicts
from tlc_file import write_parquet
from verifying import run_once

from contract.checkpoints.contents import Checkpoint
from contract.static_tables import files_of
from infrastructure.settings import Settings
from infrastructure.storage.paths import StoreUnavailable, names_in, remote_folder, text_of, write_new, write_whole
from infrastructure.storage.removal import remove
from pipeline.catalog import queries
from producers.taxi.simulation import Simulation

pytestmark = pytest.mark.delta

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def server(tmp_path_factory, settings):
    found = HdfsServer(tmp_path_factory.mktemp("hdfs"), settings)
    found.start()
    yield found
    found.stop()


@pytest.fixture
def hdfs(server, request):
    """The settings by which the lake and checkpoints are in folders of that HDFS, others for each test."""
    server.start()
    folder = f"{server.uri}/{request.node.name}"
    return {"LAKE_URI": f"{folder}/tables", "CHECKPOINT_URI": f"{folder}/checkpoints", "STREAMGAUGE_WEBHDFS_URL": server.web_url}


def seen(settings, minute, cameras=5):
    write_topic(settings, "nest-logs", (one_camera(f"cam-{camera}", START + timedelta(minutes=minute)) for camera in range(cameras)))


def test_tables_go_on_after_a_lost_commit_and_are_asked_verified_maintained_and_reset(fresh, hdfs):
    names, stored = (
        ("nest-camera-stats", "nest-archive-delta", "ingest-nest-camera-stats"),
        Settings.from_environment(environment(fresh, **hdfs)),
    )
    for minute in range(2):  # each run adds a file
        seen(fresh, minute)
        run_once(stored, *names[:2])
        done(fresh, hdfs, "ingest", "nest-camera-stats", "--once")
    checkpoints = [Checkpoint(query.checkpoint_name.folder(stored)) for query in queries(stored) if query.name in names[:2]]
    lost = [lose_last_batch(checkpoint) for checkpoint in checkpoints]
    run_once(stored, *names[:2])
    assert [checkpoint.last_committed >= number for checkpoint, number in zip(checkpoints, lost, strict=True)] == [True, True]
    assert verdicts(fresh, hdfs, *names) == ["right"] * 3
    asked = "select (select count(*) from nest_cameras_delta) as n, (select sum(count) from nest_camera_stats) as people"
    assert json.loads(done(fresh, hdfs, "query", asked, "--format", "json").stdout) == [{"n": 10, "people": 10}]
    assert " -> 1, " in done(fresh, hdfs, "maintain", "nest_cameras_delta").stdout
    assert "nest-camera-stats-v1-update in hdfs://" in done(fresh, hdfs, "reset", "nest-camera-stats", "--yes").stdout
    assert not [name for name in names_in(stored.checkpoints) if name.startswith("nest-camera-stats")]
    other = hdfs | {"STREAMGAUGE_OWNER": "another-machine:/srv"}
    assert f"the checkpoints in {hdfs['CHECKPOINT_URI']} belong to " in done(
        fresh, other, "run", names[0], "--once", code=2
    ).stderr.replace("\n", " ")


def test_without_its_hdfs_for_a_while_it_counts_right(fresh, hdfs, server):
    def counted():
        return sum(results(fresh).values())

    seen(fresh, 0)
    with running_queries("nest-camera-stats", settings=Settings.from_environment(environment(fresh, **hdfs))) as said:
        eventually(lambda: counted() == 5, "the first five to be counted")
        server.stop()
        seen(fresh, 1)
        eventually(lambda: any("waits for the object store" in line for line in said), "the query to say that HDFS is away")
        server.start()
        seen(fresh, 2)
        eventually(lambda: counted() == 15, "the others to be counted")
    assert verdicts(fresh, hdfs, "nest-camera-stats") == ["right"]


def test_a_file_is_written_whole_and_a_new_one_once(server, hdfs):
    folder = remote_folder("LAKE_URI", hdfs["LAKE_URI"], server.web_url)
    assert str(folder / "a") == f"{hdfs['LAKE_URI']}/a"
    assert [write_new(folder / "owner", text) for text in ("one", "two")] == [True, False]
    for text in ("old", "new"):
        write_whole(folder / "note.json", text)
    assert [text_of(folder / name) for name in ("owner", "note.json", "none")] == ["one", "new", None]
    assert names_in(folder) == ["note.json", "owner"], "no part of a file is left"
    remove(folder)
    assert names_in(folder) == []
    server.stop()
    for ask in (names_in, lambda folder: text_of(folder / "owner"), lambda folder: write_new(folder / "owner", ""), remove):
        with pytest.raises(StoreUnavailable):
            ask(folder)


def test_a_static_table_in_hdfs(server, hdfs):
    place = f"{hdfs['LAKE_URI']}/cameras"
    for number in range(2):
        write_whole(remote_folder("LAKE_URI", place, server.web_url) / f"{number}.csv", f"device_id,zip_code\ncam-{number},94107\n")
    for pattern, files in {"": 2, "/*.csv": 2, "/1.csv": 1}.items():
        settings = Settings(static_tables=f"device_locations={place}{pattern}", webhdfs_url=server.web_url)
        assert len(files_of("device_locations", settings)) == files


def test_files_that_land_in_hdfs(fresh, server, hdfs):
    landing = f"{hdfs['LAKE_URI']}/landing"
    folder = remote_folder("LAKE_URI", landing, server.web_url)
    settings = Settings.from_environment(environment(fresh, **hdfs, STREAMGAUGE_NEST_SOURCE=f"files:{landing}"))
    for minute in range(2):
        lines = [one_camera(f"cam-{camera}", START + timedelta(minutes=minute)) for camera in range(3)]
        write_whole(folder / f"{minute}.jsonl", b"\n".join(lines))
        run_once(settings, "nest-camera-stats")
    assert sum(results(fresh).values()) == 6
    assert verdicts(settings, hdfs, "nest-camera-stats") == ["right"]


def test_a_month_of_trips_in_hdfs(fresh, server, hdfs, tmp_path):
    write_parquet(tmp_path / "month.parquet", Simulation(start=START, seed=1, limit=50))
    place = remote_folder("LAKE_URI", hdfs["LAKE_URI"], server.web_url) / "month.parquet"
    write_whole(place, (tmp_path / "month.parquet").read_bytes())
    done(fresh, hdfs, "produce", "taxi", "--file", str(place), "--unpaced")
    assert len(read_topic(fresh, "nyc-taxi")) == 50


def test_one_clear_line_without_hdfs(fresh, hdfs):
    away = hdfs | {"STREAMGAUGE_WEBHDFS_URL": "http://127.0.0.1:1"}
    line = one_line_error(streamgauge("run", "nest-camera-stats", "--once", settings=fresh, **away))
    assert f"_URI={hdfs['LAKE_URI'].rpartition('/')[0]}" in line
    assert "http://127.0.0.1:1/webhdfs/v1 does not answer (ConnectionError); check the address" in line


def test_the_parquet_form_of_an_archive_is_refused(fresh, hdfs):
    seen(fresh, 0)
    assert "run its Delta form" in done(fresh, hdfs, "run", "nest-archive", "--once", code=2).stderr.replace("\n", " ")
