"""`streamgauge clean --topics` on a Kafka of one's own: it lists and deletes the project's topics, and no other."""

from datetime import UTC, datetime

import orjson
from confluent_kafka.admin import AdminClient, NewTopic
from plain import START, one_camera, write_topic
from running import eventually, one_line_error, streamgauge

from contract.domains import TOPICS


def clean(settings, *options):
    return streamgauge("clean", "--topics", *options, settings=settings, KAFKA_BOOTSTRAP_SERVERS=settings.bootstrap_servers)


def topics_of(settings):
    return set(AdminClient({"bootstrap.servers": settings.bootstrap_servers}).list_topics().topics)


def test_the_projects_topics_are_listed_and_deleted_and_no_other(fresh):
    yours = NewTopic("nest-logs-of-mine", num_partitions=1)
    admin = AdminClient({"bootstrap.servers": fresh.bootstrap_servers})
    admin.create_topics([yours])[yours.topic].result()
    write_topic(fresh, "nest-logs", [one_camera("cam-a", START)] * 7)
    done = clean(fresh, "--yes")
    assert done.returncode == 0, done.stderr
    listed = {line.split()[1]: line for line in done.stdout.splitlines() if line.startswith("topic ")}
    assert set(listed) == {topic.name for topic in TOPICS}
    assert listed["nest-logs"].endswith("  7 records were written to it")
    eventually(lambda: not topics_of(fresh) & set(listed), "the topics to be gone")
    assert "nest-logs-of-mine" in topics_of(fresh)
    assert "nothing to delete" in clean(fresh, "--yes").stdout


def test_one_topic_is_deleted_by_its_name(fresh):
    write_topic(fresh, "nyc-taxi", [b"{}"] * 3)
    done = streamgauge("clean", "--topic", "nyc-taxi", "--topic", "nyc-taxi", "--yes", settings=fresh)
    assert done.returncode == 0, done.stderr
    assert "topic nyc-taxi in Kafka" in done.stdout
    assert "3 records were written to it" in done.stdout
    eventually(lambda: "nyc-taxi" not in topics_of(fresh), "the topic to be gone")
    assert {topic.name for topic in TOPICS} - topics_of(fresh) == {"nyc-taxi"}
    line = one_line_error(streamgauge("clean", "--topic", "of-another-program", "--yes", settings=fresh))
    assert line.startswith("error: no topic of-another-program; there are ")


def test_nothing_is_deleted_without_a_yes(fresh):
    assert "--yes" in clean(fresh).stderr
    assert {topic.name for topic in TOPICS} <= topics_of(fresh)


def test_it_refuses_while_a_query_runs_on_any_machine(fresh):
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    times, nothing = dict.fromkeys(("since", "time", "started_at"), now), dict.fromkeys(("error", "error_detail", "error_at", "progress"))
    row = {
        "query": "nest-archive",
        "state": "running",
        "process": {"host": "elsewhere", "pid": 7},
        "source_offsets": {},
        **times,
        **nothing,
    }
    write_topic(fresh, "query-states", [orjson.dumps(row)], key=b"nest-archive")
    line = one_line_error(clean(fresh, "--yes"))
    assert "nest-archive is running" in line
    assert "elsewhere" in line
    assert {topic.name for topic in TOPICS} <= topics_of(fresh)


def test_the_embedded_kafka_needs_no_such_option(fresh):
    line = one_line_error(streamgauge("clean", "--topics", "--yes", settings=fresh))
    assert "KAFKA_BOOTSTRAP_SERVERS" in line
