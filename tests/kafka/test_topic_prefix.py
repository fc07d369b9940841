"""STREAMGAUGE_TOPIC_PREFIX: two installations on one Kafka and one schema registry."""

from plain import read_topic
from running import succeed, verify

from contract.domains import TOPICS
from infrastructure.kafka.topic_ends import partitions_by_topic
from infrastructure.registry.client import SchemaRegistry

EVENTS = {"team1.": 300, "team2_": 200}
STATS, EDITS = "nest-camera-stats", "wikimedia-edit-stats"


def test_two_prefixes_on_one_kafka_share_nothing(with_prefix):
    for prefix, events in EVENTS.items():
        own = with_prefix(prefix)
        succeed("up", settings=own)
        for domain in ("nest", "wikimedia"):
            succeed("produce", domain, "--unpaced", "--limit", str(events), settings=own)
    for prefix, events in EVENTS.items():
        own = with_prefix(prefix)
        succeed("run", STATS, EDITS, "--once", settings=own)
        found = verify(STATS, EDITS, settings=own)
        assert {query: (one["verdict"], one["records"]) for query, one in found.items()} == {
            STATS: ("right", events),
            EDITS: ("right", events),
        }
        assert found[STATS]["sink"] == f"topic {prefix}nest-camera-stats"
        named = [succeed("records", name, "--limit", "1", settings=own).stdout for name in ("nest-logs", f"{prefix}nest-logs")]
        assert named[0] == named[1]

    plain = {topic.plain_name for topic in TOPICS}
    there = {name for name in partitions_by_topic(own.kafka) if not name.startswith("__")}
    assert there == {prefix + name for name in plain for prefix in ("", *EVENTS)}
    assert {name for name in plain if read_topic(own, name)} == set()
    assert set(SchemaRegistry(own.registry).subjects()) == {
        f"{prefix}{name}-value" for prefix in EVENTS for name in ("wikimedia", "wikimedia.processed")
    }
