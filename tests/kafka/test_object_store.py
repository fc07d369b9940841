"""The lake in an object store: a real server that speaks S3's protocol, on loopback."""

import json
import os
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


def done(settings, bucket, *arguments, code=0):
    ran = streamgauge_here(*arguments, settings=settings, **bucket)
    assert ran.returncode == code, ran.stdout + ran.stderr
    return ran


def test_a_table_and_an_archive_are_written_asked_verified_maintained_and_reset(fresh, bucket):
    write_topic(fresh, "nest-logs", (one_camera(f"cam-{number % 5}", START + timedelta(minutes=number)) for number in range(60)))
    done(fresh, bucket, "run", "nest-camera-stats", "--once")
    said = done(fresh, bucket, "ingest", "nest-camera-stats", "--once").stderr
    assert f"table nest_camera_stats: {bucket['LAKE_URI']}/nest_camera_stats" in said
    done(fresh, bucket, "run", "nest-archive-delta", "--once")

    by_sql = "select (select count(*) from nest_cameras_delta) as rows, (select sum(count) from nest_camera_stats) as people"
    assert json.loads(done(fresh, bucket, "query", by_sql, "--format", "json").stdout) == [{"rows": 60, "people": 60}]
    outcomes = json.loads(done(fresh, bucket, "verify", "--format", "json").stdout)
    assert {one["query"]: one["verdict"] for one in outcomes if one["verdict"] != "not run"} == {
        "nest-camera-stats": "right",
        "nest-archive-delta": "right",
        "nest-dead-letters": "right",
        "ingest-nest-camera-stats": "right",
        "ingest-nest-camera-stats-dead-letters": "right",
    }

    # A second run adds files, which maintenance packs.
    write_topic(fresh, "nest-logs", [one_camera("cam-9", START + timedelta(minutes=99))])
    done(fresh, bucket, "run", "nest-archive-delta", "--once")
    told = done(fresh, bucket, "maintain", "nest_cameras_delta").stdout
    assert "nest_cameras_delta (delta): current " in told
    assert " -> 1 file, " in told
    assert json.loads(done(fresh, bucket, "query", "select count(*) as n from nest_cameras_delta", "--format", "json").stdout) == [
        {"n": 61}
    ]

    listed = done(fresh, bucket, "reset", "nest-archive-delta", "--yes").stdout
    assert f"table {bucket['LAKE_URI']}/nest/cameras_delta" in listed
    assert "no table nest_cameras_delta" in done(fresh, bucket, "query", "select 1 from nest_cameras_delta", code=2).stderr
    secret = bucket["AWS_SECRET_ACCESS_KEY"].encode()
    leaked = [path for path in fresh.home.rglob("*") if path.is_file() and secret in path.read_bytes()]
    assert not leaked, f"the secret stands in {leaked}"


def test_without_being_told_archives_are_delta_there(fresh, bucket):
    write_topic(fresh, "nest-logs", [one_camera("cam-1", START)])
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


def test_the_environment_that_the_programs_have_is_not_changed():
    assert "AWS_SECRET_ACCESS_KEY" not in os.environ
