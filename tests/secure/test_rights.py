"""Each program does its work with the rights that docs/security.md lists, and says in a line which one it lacks."""

import re

import pytest
from plain import read_topic, write_topic
from rights import GROUPS, Right, documented
from running import streamgauge_here

from streamgauge.kafka_topics import create_topics
from streamgauge.result_table import read_to_end
from streamgauge.topic_ends import TopicEnds
from streamgauge.topics import TOPICS

RIGHTS = documented()
PROGRAMS = {
    "up": ("up",),
    "produce nest": ("produce", "nest", "--limit", "50", "--unpaced", "--continue"),
    "produce taxi": ("produce", "taxi", "--limit", "50", "--unpaced", "--continue"),
    "report": ("report", "nest-camera-stats"),
    "status": ("status", "--format", "json"),
    "dead-letters": ("dead-letters",),
    "expire": ("expire",),
    "reset": ("reset", "nest-camera-stats", "--yes"),
}


def test_the_rights_are_of_topics_that_there_are():
    topics = {topic.name for topic in TOPICS}
    assert len(RIGHTS) == 14
    assert {right.name for rights in RIGHTS.values() for right in rights if right.kind == "TOPIC"} <= topics


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_works_with_its_rights(secured, allowed, program):
    settings = secured.come("SCRAM", allowed(program, RIGHTS[program]))
    for _ in range(2 if "--continue" in PROGRAMS[program] else 1):
        done = streamgauge_here(*PROGRAMS[program], settings=settings)
        assert done.returncode == 0, done.stderr
        assert "does not allow" not in done.stderr
        assert "could not be looked at" not in done.stderr


def test_the_doctor_is_content(secured, allowed):
    done = streamgauge_here("doctor", settings=secured.come("SCRAM", allowed("doctor", RIGHTS["doctor"])))
    assert re.search(r"ok +topics +all \d+, with the expected partitions and settings", done.stdout), done.stdout


def test_the_doctor_says_what_is_hidden_from_it(secured, allowed):
    rights = [right for right in RIGHTS["doctor"] if right.name != "alerts"]
    done = streamgauge_here("doctor", settings=secured.come("SCRAM", allowed("doctor", rights)))
    assert re.search(
        r"warning +topics +1 of \d+ are hidden from this client: alerts; grant the rights that docs/security.md lists", done.stdout
    )


def test_the_dashboard_reads_all_that_it_shows(secured, allowed):
    kafka = secured.come("SCRAM", allowed("dashboard", RIGHTS["dashboard"])).kafka
    for topic in {right.name for right in RIGHTS["dashboard"] if right.operation == "READ" and right.kind == "TOPIC"}:
        read_to_end(kafka, topic)
    ends = TopicEnds(kafka)
    ends.ask(["nest-logs-0", "nyc-taxi-0", "wikimedia-0"])
    assert set(ends.ends) == {"nest-logs-0", "nyc-taxi-0", "wikimedia-0"}


def test_a_certificate_has_rights_as_a_user_has(secured):
    secured.grant("certified", RIGHTS["produce nest"])
    settings = secured.come("MTLS", secured.as_certified("certified", password=secured.secret("key")))
    before = len(read_topic(secured.admin, "nest-logs"))
    done = streamgauge_here(*PROGRAMS["produce nest"], settings=settings)
    assert done.returncode == 0, done.stderr
    assert len(read_topic(secured.admin, "nest-logs")) == before + 50


def write_row(secured, key):
    producer = secured.admin.kafka.producer({})
    producer.produce("nest-camera-stats", b"{}", key)
    assert producer.flush(10) == 0


def without(program, *names):
    return [right for right in RIGHTS[program] if right.name not in names]


SEEN = Right("DESCRIBE", "nest-camera-stats")
LACKING = {
    "to see what it writes": ("produce nest", [], "see topic nest-logs"),
    "to write": ("produce nest", [GROUPS, Right("READ", "nest-logs")], "write to topic nest-logs"),
    "to look back": ("produce nest", [GROUPS, Right("WRITE", "nest-logs")], "read topic nest-logs"),
    "to see": ("report", without("report", "nest-camera-stats"), "see topic nest-camera-stats"),
    "to read": ("report", [*without("report", "nest-camera-stats"), SEEN], "read topic nest-camera-stats"),
    "to have a group": ("dead-letters", without("dead-letters", GROUPS.name), r"be in a group streamgauge-\*"),
}


@pytest.mark.parametrize("what", LACKING)
def test_a_right_that_lacks_is_one_line(secured, allowed, what):
    program, rights, told = LACKING[what]
    for topic in ("nest-logs", "dead-letters"):
        write_topic(secured.admin, topic, [b"{}"])
    write_row(secured, b"a")
    done = streamgauge_here(*PROGRAMS[program], settings=secured.come("SCRAM", allowed(program, rights)))
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    who = rf"{program.replace(' ', '-')}-\w+"
    assert re.match(rf"error: Kafka at \S+ does not allow {who} to {told}; grant the rights that docs/security.md lists$", line), line


def test_rows_are_not_deleted_without_the_right_and_that_is_one_line(secured, allowed):
    rights = [right for right in RIGHTS["reset"] if right.operation != "WRITE"]
    write_row(secured, b"a")
    done = streamgauge_here("reset", "nest-camera-stats", "--yes", settings=secured.come("SCRAM", allowed("reset", rights)))
    assert done.returncode == 2
    assert "did not take 1 of 1 deletions for topic nest-camera-stats (Broker: Topic authorization failed)" in done.stderr


def test_topics_are_not_created_without_the_right(secured, allowed):
    admin = secured.admin.kafka.admin()
    for done in admin.delete_topics(["wikimedia-wiki-stats"]).values():
        done.result(10)
    rights = [right for right in RIGHTS["up"] if right.operation != "CREATE"]
    done = streamgauge_here("up", settings=secured.come("SCRAM", allowed("up", rights)))
    assert done.returncode == 2
    assert "error: Kafka refused to create topic wikimedia-wiki-stats" in done.stderr
    assert "grant the right to create topics" in done.stderr
    create_topics(secured.admin.kafka)
