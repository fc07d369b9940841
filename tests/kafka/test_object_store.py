"""The lake and checkpoints in an object store: a real server that speaks S3's protocol, on loopback."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from kills import lose_last_batch
from object_store import CREDENTIALS
from plain import one_camera, results, write_topic
from running import done, environment, eventually, running_queries, streamgauge, verdicts
from verifying import run_once

from contract.checkpoints.contents import Checkpoint
from infrastructure.settings import Settings
from pipeline.catalog import queries

pytestmark = pytest.mark.delta

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def bucket(store, request):
    """The settings by which the lake and checkpoints are in folders of that bucket, others for each test."""
    return {
        "LAKE_URI": f"s3a://bucket/{request.node.name}/tables",
        "CHECKPOINT_URI": f"s3a://bucket/{request.node.name}/checkpoints",
        "AWS_ENDPOINT_URL": store.address,
        **CREDENTIALS,
    }


def asked(settings, bucket, sql):
    return json.loads(done(settings, bucket, "query", sql, "--format", "json").stdout)


def objects(store, bucket, below, place="CHECKPOINT_URI"):
    listed = store.client.list_objects_v2(Bucket="bucket", Prefix=f"{bucket[place].removeprefix('s3a://bucket/')}/{below}")
    return [told["Key"] for told in listed.get("Contents", ())]


def test_a_table_is_written_asked_and_verified(fresh, bucket):
    write_topic(fresh, "nest-logs", (one_camera(f"cam-{number % 5}", START + timedelta(minutes=number)) for number in range(60)))
    done(fresh, bucket, "run", "nest-camera-stats", "--once")
    said = done(fresh, bucket, "ingest", "nest-camera-stats", "--once").stderr
    assert f"table nest_camera_stats: {bucket['LAKE_URI']}/nest_camera_stats" in said
    assert asked(fresh, bucket, "select sum(count) as people from nest_camera_stats") == [{"people": 60}]
    assert verdicts(fresh, bucket, "nest-camera-stats", "ingest-nest-camera-stats") == ["right", "right"]
    secret = bucket["AWS_SECRET_ACCESS_KEY"].encode()
    kept_here = {path.suffix for path in fresh.checkpoint_notes.iterdir()}
    assert kept_here <= {".lock", ".driver", ".journal"}, f"{sorted(fresh.checkpoint_notes.iterdir())} are here, and belong into the store"
    leaked = [path for path in fresh.home.rglob("*") if path.is_file() and secret in path.read_bytes()]
    assert not leaked, f"the secret stands in {leaked}"


def test_what_is_there_is_for_its_owner_alone_goes_on_after_a_lost_commit_and_is_verified_maintained_and_reset(fresh, bucket, store):
    names, stored = ("nest-camera-stats", "nest-archive-delta"), Settings.from_environment(environment(fresh, **bucket))
    for minute in range(2):  # each run adds a file
        write_topic(fresh, "nest-logs", (one_camera(f"cam-{camera}", START + timedelta(minutes=minute)) for camera in range(30)))
        run_once(stored, *names)
    checkpoints = [Checkpoint(query.checkpoint_name.folder(stored)) for query in queries(stored) if query.name in names]
    lost = [lose_last_batch(checkpoint) for checkpoint in checkpoints]

    other = bucket | {"STREAMGAUGE_OWNER": "another-machine:/srv"}
    place = bucket["CHECKPOINT_URI"]
    for command in (("run", "nest-camera-stats", "--once"), ("reset", "nest-camera-stats", "--yes")):
        refused = done(fresh, other, *command, code=2).stderr.replace("\n", " ")
        assert f"the checkpoints in {place} belong to " in refused
        assert "and this is another-machine:/srv" in refused
        assert f"delete {place}/owner and start again" in refused
    store.client.delete_object(Bucket="bucket", Key=f"{place.removeprefix('s3a://bucket/')}/owner")
    run_once(replace(stored, owner_name="another-machine:/srv"), *names)
    assert [checkpoint.last_committed >= number for checkpoint, number in zip(checkpoints, lost, strict=True)] == [True, True], (
        "each was to run its last batch again"
    )
    assert verdicts(fresh, bucket, *names) == ["right", "right"], "to look at it needs no owner"

    told = done(fresh, other, "maintain", "nest_cameras_delta").stdout
    assert "nest_cameras_delta (delta): current files " in told
    assert " -> 1, " in told
    assert asked(fresh, other, "select count(*) as n from nest_cameras_delta") == [{"n": 60}]

    assert "nest-camera-stats-v1-update in s3a://" in done(fresh, other, "reset", "nest-camera-stats", "--yes").stdout
    assert objects(store, bucket, "nest-camera-stats-v1-update/") == []
    listed = done(fresh, other, "reset", "nest-archive-delta", "--yes").stdout
    assert f"table {bucket['LAKE_URI']}/nest/cameras_delta" in listed
    assert "no table nest_cameras_delta" in done(fresh, bucket, "query", "select 1 from nest_cameras_delta", code=2).stderr


def test_without_its_store_for_a_while_it_counts_right(fresh, bucket, store):
    def seen(minute):
        write_topic(fresh, "nest-logs", (one_camera(f"cam-{camera}", START + timedelta(minutes=minute)) for camera in range(5)))

    def counted():
        return sum(results(fresh).values())

    seen(0)
    with running_queries("nest-camera-stats", settings=Settings.from_environment(environment(fresh, **bucket))) as said:
        eventually(lambda: counted() == 5, "the first five to be counted")
        store.stop()
        seen(1)
        eventually(lambda: any("waits for the object store" in line for line in said), "the query to say that the store is away")
        store.start()
        seen(2)
        eventually(lambda: counted() == 15, "the others to be counted")
    assert verdicts(fresh, bucket, "nest-camera-stats") == ["right"]


def test_without_the_store_of_its_table_alone_for_a_while_ingest_waits_and_maintain_commits_nothing_beside_it(fresh, bucket, store):
    del bucket["CHECKPOINT_URI"]

    def written(number):
        write_topic(fresh, "nest-logs", [json.dumps({"number": number}).encode()], key=b"one", partitions=1)

    def log():
        return objects(store, bucket, "nest_logs/_delta_log/", "LAKE_URI")

    def commits():
        return [name for name in log() if re.search(r"/\d+\.json$", name)]

    written(1)
    done(fresh, bucket, "ingest", "nest-logs", "--once")
    before = log()
    settings = replace(Settings.from_environment(environment(fresh, **bucket)), restart_limit=0)
    with running_queries("ingest-nest-logs", settings=settings) as said:
        eventually(lambda: any(line == "ingest-nest-logs runs" for line in said), "the query to run")
        store.stop()
        written(2)
        eventually(lambda: any("waits for the object store" in line for line in said), f"the query to say that the store is away: {said}")
        store.start()
        newest = "select number from nest_logs"
        eventually(lambda: log() != before and asked(fresh, bucket, newest) == [{"number": 2}], "the newest record in the table")

        before = commits()
        told = done(fresh, bucket, "maintain", "nest_logs").stdout
        assert "nest_logs (delta): current files 1, " in told
        assert "only unused files were deleted: query ingest-nest-logs is already running" in told
        assert commits() == before, "beside a running query, maintain commits nothing"


def test_without_being_told_archives_are_delta_there(fresh, bucket):
    refused = done(fresh, bucket, "run", "nest-archive", "--once", code=2)
    assert f"{bucket['LAKE_URI']}/nest/cameras is not; run its Delta form" in refused.stderr
    assert "nest-archive-delta" in {query.name for query in queries(replace(fresh, lake_uri=bucket["LAKE_URI"]))}


@pytest.mark.parametrize(
    ("command", "change", "said"),
    [
        ("query", {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "cannot be reached at http://127.0.0.1:9: EndpointConnectionError"),
        ("maintain", {"LAKE_URI": "s3a://no-such-bucket/lake"}, "no tables yet in s3a://no-such-bucket/lake"),
        (
            "query",
            {"LAKE_URI": "ftp://lake/x"},
            "LAKE_URI is 'ftp://lake/x'; expected a folder, as a path or file:///path, or an object store",
        ),
    ],
)
def test_what_cannot_be_reached_is_one_line(settings, bucket, command, change, said):
    refused = streamgauge(command, settings=settings, **(bucket | change))
    assert refused.returncode == 2
    assert said in refused.stderr
    assert "Traceback" not in refused.stderr
