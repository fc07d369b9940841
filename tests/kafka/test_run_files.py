"""The Nest queries on files that land in a folder, instead of a topic."""

import gzip
import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow.parquet as pq
import pytest
import verifying
from kills import kill_in_a_batch, lose_last_batch
from object_store import CREDENTIALS
from plain import counts_of, folded, one_camera, read_topic, results, sightings_of
from running import eventually, running_queries, streamgauge, succeed, verify

from contract.checkpoints.contents import Checkpoint

NEST = ("nest-camera-stats", "nest-archive", "nest-dead-letters")
START = datetime(2026, 1, 1, tzinfo=UTC)
DOCUMENTS = [one_camera(f"cam-{number % 40}", START + timedelta(seconds=number)) for number in range(600)]


@pytest.fixture
def landing(tmp_path):
    """Lands `content` under a name that is not read, and renames it."""
    folder = tmp_path / "landing"
    folder.mkdir()

    def land(name, content):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        draft = path.with_name(f"_{path.name}")
        draft.write_bytes(content)
        return draft.rename(path)

    land.folder = folder
    return land


def of_files(landing, **more):
    return {"STREAMGAUGE_NEST_SOURCE": f"files:{landing.folder}", **more}


def run_once(settings, landing, **more):
    succeed("run", *NEST, "--once", settings=settings, **of_files(landing, **more))


def verified(settings, landing, *queries):
    return verify(*queries, settings=settings, **of_files(landing))


def letters(settings):
    """Reason by file name and line."""
    told = [dict(letter.headers()) for letter in read_topic(settings, "dead-letters")]
    return {(one["topic"].decode().rpartition("/")[2], int(one["offset"])): one["reason"].decode() for one in told}


def archived(settings):
    """Rows by file name and line, of the files that Spark's log names."""
    folder = settings.lake / "nest" / "cameras"
    rows = pq.read_table(folder, columns=["topic", "offset"]).to_pylist()
    return Counter((row["topic"].rpartition("/")[2], row["offset"]) for row in rows)


def lines(documents):
    return b"\n".join(documents) + b"\n"


def test_files_count_once_each_also_after_a_lost_commit_and_what_is_broken_gone_or_changed_is_named(fresh, landing):
    landing("a.json", lines(DOCUMENTS[:200]))
    landing("2026-01-01/b c.jsonl.gz", gzip.compress(lines(DOCUMENTS[200:400])))
    landing("one.json", json.dumps(json.loads(DOCUMENTS[400]), indent=2).encode())
    landing("cut.json.gz", gzip.compress(lines(DOCUMENTS[401:500]))[:-20])
    landing("odd.ndjson", lines([DOCUMENTS[500], b"rubbish", b'{"devices": 1}']))
    (landing.folder / "half.json.part").write_bytes(DOCUMENTS[599][:50])
    (landing.folder / "_half.json").write_bytes(DOCUMENTS[599][:50])
    run_once(fresh, landing, STREAMGAUGE_MAX_FILES_PER_TRIGGER="2")

    used = [*DOCUMENTS[:401], DOCUMENTS[500]]
    assert results(fresh) == counts_of(set().union(*map(sightings_of, used)))
    found = letters(fresh)
    assert found.pop(("cut.json.gz", 0)).startswith("the file cannot be read to its end, and nothing of it was used")
    assert found == {("odd.ndjson", 2): "not JSON", ("odd.ndjson", 3): "no devices"}
    assert sum(archived(fresh).values()) == len(archived(fresh)) == len(used)
    assert (archived(fresh)["a.json", 1], archived(fresh)["b c.jsonl.gz", 200], archived(fresh)["one.json", 1]) == (1, 1, 1)

    outcomes = verified(fresh, landing)
    assert {name: outcomes[name]["verdict"] for name in NEST} == dict.fromkeys(NEST, "right"), outcomes
    assert outcomes["nest-archive"]["records"] == len(used) + 2
    assert outcomes["nest-archive"]["rows"]["equal"] == len(used)

    # As after a kill, the last batch runs again; and another file has landed since.
    for checkpoint in ("nest-camera-stats-v1-update", "nest-archive-v1-append"):
        lose_last_batch(Checkpoint(fresh.checkpoints / checkpoint))
    landing("again.json.gz", gzip.compress(lines(DOCUMENTS[501:550])))
    verifying.run_once(replace(fresh, nest_source=f"files:{landing.folder}"), "nest-camera-stats", "nest-archive")
    used += DOCUMENTS[501:550]
    assert results(fresh) == counts_of(set().union(*map(sightings_of, used)))
    assert sum(archived(fresh).values()) == len(archived(fresh)) == len(used)

    # What has gone or changed since is told; a row that no file gave is wrong.
    (landing.folder / "a.json").unlink()
    landing("one.json", DOCUMENTS[599])
    gone = verified(fresh, landing, "nest-archive")["nest-archive"]
    assert f"1 files that were read are no longer there: what came of them cannot be checked ({landing.folder}/a.json)" in gone["notes"]
    assert any(note.startswith("1 files that were read are changed since") for note in gone["notes"]), gone["notes"]
    rows = {kind: count for kind, count in gone["rows"].items() if count and kind != "compared"}
    assert (gone["verdict"], rows) == ("wrong", {"equal": len(used) - 201, "not_checkable": 200, "different": 1})


@pytest.fixture
def in_bucket(fresh, store):
    """Settings for a store's files: those in folders `landing` of any folder of the bucket. Objects, unlike files, appear whole."""

    def put(name, content):
        store.client.put_object(Bucket="bucket", Key=f"{fresh.home.name}/landing/{name}", Body=content)

    put.settings = replace(fresh, nest_source="files:s3a://bucket/*/landing", aws_endpoint_url=store.address)
    return put


def test_files_in_a_bucket_count_once_each_also_after_kill_9_and_verify_reads_them_there(in_bucket, store):
    settings, names = in_bucket.settings, ("nest-camera-stats", "nest-archive")
    for number in range(0, 400, 10):
        in_bucket(f"{number}.json", lines(DOCUMENTS[number : number + 10]))
    checkpoints = [Checkpoint(settings.checkpoints / name) for name in ("nest-camera-stats-v1-update", "nest-archive-v1-append")]

    def are_all_in_a_batch():
        return all(0 <= checkpoint.last_committed < checkpoint.planned[-1] for checkpoint in checkpoints)

    kill_in_a_batch(names, are_all_in_a_batch, settings, **CREDENTIALS, STREAMGAUGE_MAX_FILES_PER_TRIGGER="1")
    assert 0 < sum(results(settings).values()) < 400

    in_bucket("2026-01-01/b c%20#?+.jsonl.gz", gzip.compress(lines(DOCUMENTS[400:500])))
    in_bucket("cut.json.gz", gzip.compress(lines(DOCUMENTS[500:550]))[:-20])
    in_bucket("odd.ndjson", lines([DOCUMENTS[550], b"rubbish"]))
    in_bucket("one.json", json.dumps(json.loads(DOCUMENTS[551]), indent=2).encode())
    in_bucket("empty.json", b"")
    in_bucket("other.txt", DOCUMENTS[552])
    succeed("run", *NEST, "--once", settings=settings)
    used = [*DOCUMENTS[:500], *DOCUMENTS[550:552]]
    assert results(settings) == counts_of(set().union(*map(sightings_of, used)))
    assert sum(archived(settings).values()) == len(archived(settings)) == len(used)
    assert letters(settings).keys() == {("cut.json.gz", 0), ("odd.ndjson", 2)}
    outcomes = verify(settings=settings)
    assert {name: outcomes[name]["verdict"] for name in NEST} == dict.fromkeys(NEST, "right"), outcomes
    assert outcomes["nest-archive"]["rows"]["equal"] == len(used)

    store.client.delete_object(Bucket="bucket", Key=f"{settings.home.name}/landing/0.json")
    gone = verify("nest-archive", settings=settings)["nest-archive"]
    where = f"s3a://bucket/{settings.home.name}/landing/0.json"
    assert gone["notes"] == [f"1 files that were read are no longer there: what came of them cannot be checked ({where})"]
    assert gone["rows"]["not_checkable"] == 10


def test_a_bucket_that_does_not_exist_is_one_clear_line(in_bucket):
    settings = replace(in_bucket.settings, nest_source="files:s3a://no-such/landing")
    refused = streamgauge("run", "nest-archive", "--once", settings=settings)
    assert refused.returncode == 2
    assert "the source folder s3a://no-such/landing cannot be read (The specified bucket does not exist); create it" in refused.stderr
    assert "restarts" not in refused.stderr


def test_without_the_bucket_for_a_while_files_wait_and_none_is_a_dead_letter(in_bucket, store):
    with running_queries("nest-camera-stats", "nest-dead-letters", settings=in_bucket.settings) as said:
        in_bucket("a.json", lines(DOCUMENTS[:100]))
        eventually(lambda: sum(results(in_bucket.settings).values()) == 100, "the first file to be counted")
        in_bucket("b.json", lines(DOCUMENTS[100:200]))
        store.stop()
        eventually(lambda: any("waits for the object store" in line for line in said), "the query to say that the store is away")
        store.start()
        in_bucket("c.json", lines(DOCUMENTS[200:300]))
        eventually(lambda: sum(results(in_bucket.settings).values()) == 300, "all files to be counted")
    assert letters(in_bucket.settings) == {}


def test_a_checkpoint_is_of_one_source(fresh, landing):
    landing("a.json", lines(DOCUMENTS[:10]))
    succeed("run", "nest-camera-stats", "--once", settings=fresh, **of_files(landing))
    refused = streamgauge("run", "nest-camera-stats", "--once", settings=fresh)
    assert refused.returncode == 2
    assert f"query nest-camera-stats has read files:{landing.folder} and is now to read topic nest-logs" in refused.stderr
    assert verify("nest-camera-stats", settings=fresh)["nest-camera-stats"]["records"] == 10, "verify recounts what the checkpoint names"

    succeed("reset", "nest-dead-letters", "--yes", settings=fresh, **of_files(landing))
    reset = succeed("reset", "nest-camera-stats", "--yes", settings=fresh, **of_files(landing))
    assert f"the next run reads all files that are in {landing.folder} then" in reset.stdout
    assert folded(fresh, "nest-camera-stats") == {}
    succeed("run", "nest-camera-stats", "--once", settings=fresh)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            "files:/no/such/folder",
            "the source folder /no/such/folder cannot be read (No such file or directory); create it",
        ),
        ("/data", "STREAMGAUGE_NEST_SOURCE is '/data'; expected files: and a folder, such as files:/data/landing"),
        ("files:https://a.example/b", "STREAMGAUGE_NEST_SOURCE is 'files:https://a.example/b'; expected files: and a folder"),
        ("files:/no/such/*/folder", "the source folder /no/such cannot be read (No such file or directory); create it"),
    ],
)
def test_what_is_no_folder_is_one_clear_line(settings, tmp_path, source, said):
    refused = streamgauge(
        "run", "nest-archive", "--once", settings=settings, STREAMGAUGE_NEST_SOURCE=source, STREAMGAUGE_HOME=str(tmp_path)
    )
    assert refused.returncode == 2
    assert said in refused.stderr
    assert "Traceback" not in refused.stderr
