"""The lake in an object store: a real server that speaks S3's protocol, on loopback."""

import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from moto.server import ThreadedMotoServer
from plain import one_camera, write_topic
from running import streamgauge, streamgauge_here

from pipeline.catalog import queries

pytestmark = pytest.mark.timeout(900)
START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def store():
    """The address of a server that holds an empty bucket `lake`."""
    import boto3

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    boto3.client("s3", endpoint_url=address, aws_access_key_id="k", aws_secret_access_key="s", region_name="us-east-1").create_bucket(
        Bucket="lake"
    )
    yield address
    server.stop()


@pytest.fixture
def bucket(store, request):
    """The settings by which the lake is a folder of that bucket, another one for each test."""
    return {
        "LAKE_URI": f"s3a://lake/{request.node.name}",
        "AWS_ENDPOINT_URL": store,
        "AWS_ACCESS_KEY_ID": "k",
        "AWS_SECRET_ACCESS_KEY": "a-secret-that-nobody-may-see",
        "AWS_REGION": "us-east-1",
    }


@pytest.fixture(scope="module")
def done():
    """Runs a command in a process that runs nothing else: a JVM's class path is that of its first Spark, and there others have begun without S3."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:

        def run(settings, bucket, *arguments, code=0):
            ran = process.submit(streamgauge_here, *arguments, settings=settings, **bucket).result()
            assert ran.returncode == code, ran.stdout + ran.stderr
            return ran

        yield run


def verdicts(done, settings, bucket):
    outcomes = json.loads(done(settings, bucket, "verify", "--format", "json").stdout)
    return {one["query"]: one["verdict"] for one in outcomes if one["verdict"] != "not run"}


def asked(done, settings, bucket, sql):
    return json.loads(done(settings, bucket, "query", sql, "--format", "json").stdout)


def test_a_table_is_written_asked_and_verified(fresh, bucket, done):
    write_topic(fresh, "nest-logs", (one_camera(f"cam-{number % 5}", START + timedelta(minutes=number)) for number in range(60)))
    done(fresh, bucket, "run", "nest-camera-stats", "--once")
    said = done(fresh, bucket, "ingest", "nest-camera-stats", "--once").stderr
    assert f"table nest_camera_stats: {bucket['LAKE_URI']}/nest_camera_stats" in said
    assert asked(done, fresh, bucket, "select sum(count) as people from nest_camera_stats") == [{"people": 60}]
    expected = ("nest-camera-stats", "nest-dead-letters", "ingest-nest-camera-stats", "ingest-nest-camera-stats-dead-letters")
    assert verdicts(done, fresh, bucket) == dict.fromkeys(expected, "right")
    secret = bucket["AWS_SECRET_ACCESS_KEY"].encode()
    leaked = [path for path in fresh.home.rglob("*") if path.is_file() and secret in path.read_bytes()]
    assert not leaked, f"the secret stands in {leaked}"


@pytest.mark.long
def test_an_archive_is_written_verified_maintained_and_reset(fresh, bucket, done):
    for number in range(2):  # each run adds a file
        write_topic(fresh, "nest-logs", (one_camera(f"cam-{camera}", START + timedelta(minutes=number)) for camera in range(30)))
        done(fresh, bucket, "run", "nest-archive-delta", "--once")
    assert verdicts(done, fresh, bucket)["nest-archive-delta"] == "right"
    told = done(fresh, bucket, "maintain", "nest_cameras_delta").stdout
    assert "nest_cameras_delta (delta): current " in told
    assert " -> 1 file, " in told
    assert asked(done, fresh, bucket, "select count(*) as n from nest_cameras_delta") == [{"n": 60}]

    listed = done(fresh, bucket, "reset", "nest-archive-delta", "--yes").stdout
    assert f"table {bucket['LAKE_URI']}/nest/cameras_delta" in listed
    assert "no tables yet in s3a://" in done(fresh, bucket, "query", "select 1 from nest_cameras_delta", code=2).stderr


def test_without_being_told_archives_are_delta_there(fresh, bucket, done):
    refused = done(fresh, bucket, "run", "nest-archive", "--once", code=2)
    assert f"relies on renames that are one step, which {bucket['LAKE_URI']}/nest/cameras has not" in refused.stderr
    assert "nest-archive-delta" in {query.name for query in queries(replace(fresh, lake_uri=bucket["LAKE_URI"]))}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "cannot be reached at http://127.0.0.1:9: EndpointConnectionError"),
        ({"LAKE_URI": "s3a://no-such-bucket/lake"}, "no-such-bucket"),
        ({"LAKE_URI": "ftp://lake/x"}, "LAKE_URI is 'ftp://lake/x'; expected a folder, as a path or file:///path, or an object store"),
    ],
)
def test_what_cannot_be_reached_is_one_line(settings, bucket, change, said):
    refused = streamgauge("query", settings=settings, **(bucket | change))
    assert refused.returncode == 2
    assert said in refused.stderr
    assert "Traceback" not in refused.stderr
