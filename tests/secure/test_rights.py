"""Each program does its work with the rights that docs/security.md lists, and says in a line which one it lacks."""

import re
from importlib import import_module

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from messages import absent
from plain import read_topic, write_topic
from rights import Right, documented
from running import eventually, one_line_error, streamgauge

from contract.create_topics import create_topics
from contract.domains import NAMES, TOPICS
from infrastructure.kafka.cluster import GROUP_PREFIX
from infrastructure.kafka.consumer import is_about_group
from infrastructure.kafka.dead_letters import whole_letter
from infrastructure.kafka.errors import KafkaRefuses
from infrastructure.kafka.result_table import TableReader, read_to_end
from infrastructure.kafka.topic_ends import TopicEnds
from infrastructure.settings import Settings
from pipeline.sinks.topics import TopicSink

RIGHTS = documented()
PROGRAMS = {
    "up": ("up",),
    "produce nest": ("produce", "nest", "--limit", "50", "--unpaced", "--continue"),
    "produce taxi": ("produce", "taxi", "--limit", "50", "--unpaced", "--continue"),
    "report": ("report", "nest-camera-stats"),
    "status": ("status",),
    "dead-letters": ("dead-letters",),
    "expire": ("expire",),
    "reset": ("reset", "nest-camera-stats", "--yes"),
    "query": ("query", "select count(*) from live_nest_camera_stats"),
}


def test_the_rights_are_of_topics_that_there_are():
    topics = {topic.name for topic in TOPICS}
    assert len(RIGHTS) == 16
    assert {right.name for rights in RIGHTS.values() for right in rights} <= topics


def test_the_rights_of_run_and_verify_are_for_every_query():
    of_domains = [query for name in NAMES for query in import_module(f"pipeline.domains.{name}").queries(Settings())]
    sources = {query.source.name for query in of_domains}
    results = {topic.name for query in of_domains if isinstance(query.sink, TopicSink) for topic in query.sink.topics}
    told = {"streaming-metrics", "query-states", "alerts"}
    assert sources | {"query-states"} == of("run", "READ"), "it reads which process runs them"
    assert results | told == of("run", "WRITE")
    assert sources | results | {"alerts"} == of("verify", "READ")


def of(program, operation):
    return {right.name for right in RIGHTS[program] if right.operation == operation}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_works_with_its_rights(secured, allowed, program):
    settings = secured.come("SCRAM", allowed(program, RIGHTS[program]))
    for _ in range(2 if "--continue" in PROGRAMS[program] else 1):
        done = streamgauge(*PROGRAMS[program], settings=settings)
        assert done.returncode == 0, done.stderr
        assert "docs/security.md" not in done.stderr, "no right was to lack"


def test_the_doctor_is_content(secured, allowed):
    done = streamgauge("doctor", settings=secured.come("SCRAM", allowed("doctor", RIGHTS["doctor"])))
    assert re.search(rf"ok +topics .*\b{len(TOPICS)}\b", done.stdout), done.stdout


def test_the_doctor_says_what_is_hidden_from_it(secured, allowed):
    rights = [right for right in RIGHTS["doctor"] if right.name != "alerts"]
    done = streamgauge("doctor", settings=secured.come("SCRAM", allowed("doctor", rights)))
    assert re.search(rf"warning +topics +1 of {len(TOPICS)} .*\balerts\b.*docs/security\.md", done.stdout), done.stdout


def test_the_dashboard_reads_all_that_it_shows(secured, allowed):
    kafka = secured.come("SCRAM", allowed("dashboard", RIGHTS["dashboard"])).kafka
    for topic in {right.name for right in RIGHTS["dashboard"] if right.operation == "READ"}:
        read_to_end(kafka, topic)
    ends = TopicEnds(kafka)
    ends.ask(["nest-logs-0", "nyc-taxi-0", "wikimedia-0"])
    assert set(ends.ends) == {"nest-logs-0", "nyc-taxi-0", "wikimedia-0"}


def test_a_certificate_has_rights_as_a_user_has(secured):
    secured.grant("certified", RIGHTS["produce nest"])
    settings = secured.come("MTLS", secured.as_certified("certified", password=secured.secret("key")))
    before = len(read_topic(secured.admin, "nest-logs"))
    done = streamgauge(*PROGRAMS["produce nest"], settings=settings)
    assert done.returncode == 0, done.stderr
    assert len(read_topic(secured.admin, "nest-logs")) == before + 50


def test_a_consumer_that_may_have_no_group_keeps_reading(secured, allowed):
    kafka = secured.come("SCRAM", allowed("report", RIGHTS["report"])).kafka
    topic = [TopicPartition("nest-camera-stats", 0, OFFSET_BEGINNING)]
    other = kafka._made(Consumer, {"group.id": GROUP_PREFIX})
    other.assign(topic)
    with TableReader(kafka, "nest-camera-stats").opened() as reader:
        reader.read_to_end()
        eventually(lambda: (message := other.poll(0.1)) is not None and is_about_group(message), "Kafka to deny the group")
        write_row(secured, b"a")
        eventually(lambda: reader.poll(0.1), "the row that was written afterwards to be read")
    other.close()


def write_row(secured, key):
    producer = secured.admin.kafka.producer({})
    producer.produce("nest-camera-stats", b"{}", key)
    assert producer.flush(10) == 0


def without(program, *names):
    return [right for right in RIGHTS[program] if right.name not in names]


SEEN = Right("DESCRIBE", "nest-camera-stats")
LACKING = {
    "to see what it writes": ("produce nest", [], ("see", "nest-logs")),
    "to write": ("produce nest", [Right("READ", "nest-logs")], ("write", "nest-logs")),
    "to look back": ("produce nest", [Right("WRITE", "nest-logs")], ("read", "nest-logs")),
    "to see": ("report", without("report", "nest-camera-stats"), ("see", "nest-camera-stats")),
    "to read": ("report", [*without("report", "nest-camera-stats"), SEEN], ("read", "nest-camera-stats")),
}


@pytest.mark.parametrize("what", LACKING)
def test_a_right_that_lacks_is_one_line(secured, allowed, what):
    program, rights, told = LACKING[what]
    for topic in ("nest-logs", "dead-letters"):
        write_topic(secured.admin, topic, [b"{}"])
    write_row(secured, b"a")
    done = streamgauge(*PROGRAMS[program], settings=secured.come("SCRAM", allowed(program, rights)))
    assert absent(one_line_error(done), f"{program.replace(' ', '-')}-", *told, "docs/security.md") == []


def test_rows_are_not_deleted_without_the_right_and_that_is_one_line(secured, allowed):
    rights = [right for right in RIGHTS["reset"] if right.operation != "WRITE"]
    write_row(secured, b"a")
    done = streamgauge("reset", "nest-camera-stats", "--yes", settings=secured.come("SCRAM", allowed("reset", rights)))
    assert done.returncode == 2
    assert absent(done.stderr, "1 of 1", "nest-camera-stats", "Topic authorization failed") == []


def test_a_dead_letter_is_not_shown_without_the_right(secured, allowed):
    kafka = secured.come("SCRAM", allowed("letters", [Right("DESCRIBE", "dead-letters")])).kafka
    with pytest.raises(KafkaRefuses, match=r"does not allow letters-\w+ to read topic dead-letters; grant"):
        whole_letter(kafka, "dead-letters", 0)


def test_topics_are_not_created_without_the_right(secured, allowed):
    admin = secured.admin.kafka.admin()
    for done in admin.delete_topics(["wikimedia-wiki-stats"]).values():
        done.result()
    rights = [right for right in RIGHTS["up"] if right.operation != "CREATE"]
    done = streamgauge("up", settings=secured.come("SCRAM", allowed("up", rights)))
    assert done.returncode == 2
    assert absent(done.stderr, "wikimedia-wiki-stats", "create") == []
    create_topics(secured.admin.kafka)
