"""Queries that fail, in a real pipeline: the others go on, a person is told, and what can mend itself does."""

import json
import shlex
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet
import pytest
from confluent_kafka.admin import AdminClient
from plain import one_camera, read_topic, results, write_topic
from running import environment, eventually, few_rows, running_queries, start_server, streamgauge, succeed

from contract.create_topics import create_topics
from infrastructure.errors import StreamgaugeError
from streamgauge.platform.kafka import EmbeddedKafka

START = datetime(2026, 1, 1, tzinfo=UTC)


def cameras(count):
    return [one_camera(f"cam-{number}", START) for number in range(count)]


def alerts(settings):
    return [json.loads(message.value()) for message in read_topic(settings, "alerts")]


def recreate(settings, topic):
    admin = AdminClient({"bootstrap.servers": settings.bootstrap_servers})
    admin.delete_topics([topic])[topic].result()
    eventually(lambda: topic not in admin.list_topics().topics, f"topic {topic} to be gone")
    create_topics(settings.kafka)


def test_a_query_that_fails_for_good_is_given_up_with_an_alert_and_the_others_go_on(fresh):
    write_topic(fresh, "nest-logs", cameras(10))
    (fresh.lake / "nest").mkdir(parents=True)
    (fresh.lake / "nest" / "cameras").touch()  # where its folder should be
    settings = replace(fresh, restart_limit=1)
    with (  # noqa: PT012 - the error comes at the end of the run
        pytest.raises(StreamgaugeError, match=r"^query nest-archive given up: failed 2 times without a batch in between"),
        running_queries("nest-archive", "nest-camera-stats", settings=settings) as said,
    ):
        eventually(lambda: any("nest-archive is given up" in line for line in said), "the broken query to be given up")
        write_topic(fresh, "nest-logs", [one_camera(f"later-{number}", START) for number in range(10)])
        eventually(lambda: sum(results(fresh).values()) == 20, "the other query to count what came later")
    levels = [(alert["level"], alert["query"]) for alert in alerts(fresh)]
    assert levels == [("warning", "nest-archive"), ("error", "nest-archive")]


def test_a_topic_that_was_deleted_and_recreated_is_noticed_however_much_it_holds(fresh):
    write_topic(fresh, "nest-logs", cameras(10))
    succeed("run", "nest-camera-stats", "--once", settings=fresh)
    recreate(fresh, "nest-logs")
    write_topic(fresh, "nest-logs", cameras(300))
    done = streamgauge("run", "nest-camera-stats", "--once", settings=fresh)
    assert done.returncode == 2
    assert "topic nest-logs was deleted and recreated. Two ways out" in done.stderr
    assert "Traceback" not in done.stderr
    (failed,) = [
        row for row in json.loads(succeed("status", "--format", "json", settings=fresh).stdout) if row["query"] == "nest-camera-stats"
    ]
    assert failed["state"] == "failed"
    assert "topic nest-logs was deleted and recreated" in failed["error"]
    assert len(failed["error"].splitlines()) == 1
    assert "\tat " not in failed["error_detail"]
    table = succeed("status", settings=fresh).stdout
    assert "FAILED" in table
    assert "nest-camera-stats, last error" in table
    succeed("run", "nest-camera-stats", "--once", settings=fresh, STREAMGAUGE_FAIL_ON_DATA_LOSS="false")
    succeed("run", "nest-camera-stats", "--once", settings=fresh)  # the gap was accepted once, and need not be again


def can_mount():
    """Whether a file system may be mounted, in a namespace of its own."""
    return (
        shutil.which("unshare") is not None
        and subprocess.run(["unshare", "-Urm", "true"], check=False, capture_output=True).returncode == 0
    )


@pytest.mark.skipif(not can_mount(), reason="a small disk is not possible on this machine: user namespaces are forbidden")
def test_a_full_disk_is_named_and_nothing_is_lost_when_there_is_space_again(fresh, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    write_topic(fresh, "nest-logs", cameras(10))
    run = f"mount -t tmpfs -o size=400m tmpfs {shlex.quote(str(small))} && exec {shlex.quote(sys.executable)} -m streamgauge.cli run nest-archive"
    variables = {"STREAMGAUGE_HOME": str(small), "STREAMGAUGE_RESTART_LIMIT": "10"}
    log = tmp_path / "pipeline.txt"
    with (
        log.open("w") as stderr,
        subprocess.Popen(["unshare", "-Urm", "sh", "-c", run], env=environment(few_rows(fresh), **variables), stderr=stderr) as process,
    ):
        home = Path(f"/proc/{process.pid}/root{small}")
        try:
            eventually(lambda: archived_rows(home) == 10, "the first ten to be archived")
            with suppress(OSError), (home / "filler").open("wb", buffering=0) as filler:
                while True:
                    filler.write(bytes(4096))
            write_topic(fresh, "nest-logs", [one_camera(f"later-{number}", START) for number in range(50)])
            told = f"no space is left under {small}; free some space; nothing is lost meanwhile"
            eventually(lambda: told in log.read_text() or process.poll() is not None, "the full disk to be named")
            assert any(told in alert["what"] for alert in alerts(fresh))
            (home / "filler").unlink()
            eventually(lambda: archived_rows(home) == 60, "the others to be archived")
        finally:
            process.terminate()
    assert process.returncode == 0, log.read_text()
    assert "Traceback" not in log.read_text()


def archived_rows(home):
    """How many rows the archive of cameras has by the files that Spark's log names."""
    archive = home / "lake" / "nest" / "cameras"
    entries = [line for path in (archive / "_spark_metadata").glob("[0-9]*") for line in path.read_text().splitlines()[1:]]
    names = {json.loads(line)["path"].partition("/lake/nest/cameras/")[2] for line in entries}
    return sum(pyarrow.parquet.read_metadata(archive / name).num_rows for name in names)


def test_a_broker_that_goes_away_is_waited_for_and_counts_as_no_failure(own_broker):
    broker = EmbeddedKafka(own_broker)
    write_topic(own_broker, "nest-logs", cameras(10))
    # So that Spark's Kafka clients give up in a few seconds, and not in forty.
    impatient = replace(own_broker, restart_limit=0, kafka_options="request.timeout.ms=3000 default.api.timeout.ms=4000")
    with running_queries("nest-camera-stats", settings=impatient) as said:
        eventually(lambda: sum(results(own_broker).values()) == 10, "the first ten to be counted")
        broker.stop()
        eventually(lambda: any("waits for Kafka" in line for line in said), "the query to wait for Kafka")
        start_server(broker)
        write_topic(own_broker, "nest-logs", [one_camera(f"later-{number}", START) for number in range(10)])
        eventually(lambda: sum(results(own_broker).values()) == 20, "the others to be counted")


@pytest.mark.usefixtures("soon_away")
def test_kafka_away_at_the_start_is_one_line_after_which_once_gives_up(tmp_path, settings, monkeypatch):
    monkeypatch.setattr("pipeline.running.query_life.ONCE_SECONDS", 1)
    done = streamgauge(
        "run", "nest-archive", "--once", settings=settings, STREAMGAUGE_HOME=str(tmp_path), KAFKA_BOOTSTRAP_SERVERS="127.0.0.1:1"
    )
    assert done.returncode == 2
    assert "nest-archive waits for Kafka and tries again every 2 s: no Kafka answers at 127.0.0.1:1" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: queries nest-dead-letters, nest-archive given up: no Kafka answers")


def test_a_silent_source_is_an_alert_that_is_resolved_when_a_record_comes(fresh):
    def told():
        return [(alert["level"], alert["what"].partition(":")[0]) for alert in alerts(fresh) if alert["query"] == "nest-camera-stats"]

    write_topic(fresh, "nest-logs", cameras(1))
    with running_queries("nest-camera-stats", settings=replace(fresh, alert_silent_seconds=2)) as said:
        eventually(lambda: told() == [("warning", "silent source")], "an alert")
        write_topic(fresh, "nest-logs", cameras(2))
        eventually(lambda: told()[:2] == [("warning", "silent source"), ("resolved", "silent source")], "the end of the alert")
    assert any("nest-camera-stats: silent source: no new record, for 2 s" in line for line in said)
    assert any("nest-camera-stats: resolved: silent source" in line for line in said)
