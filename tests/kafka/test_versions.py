"""A new version of a query beside the current one: into a topic of its own, compared by `verify`; and in its place."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import TopicPartition
from plain import counts_of, one_camera, results, write_topic
from pyspark.sql import functions as F  # noqa: N812
from running import streamgauge, succeed, verify
from topic_reset import empty_topics

from audit.domains import nest as audit_of_nest
from pipeline.domains import nest

STATS = "nest-camera-stats"
START = datetime(2026, 1, 1, tzinfo=UTC)
SECOND_HOUR = START + timedelta(hours=1)
SIGHTINGS = [(f"cam-{number % 7}", START + timedelta(minutes=number)) for number in range(300)]
AS_CURRENT = nest.queries
SECOND_STATS = audit_of_nest.CAMERA_STATS.replace(
    "FROM counted", "FROM (FROM counted WHERE device_id <> 'cam-3' AND start_time >= TIMESTAMP '2026-01-01 01:00:00')"
)
"""What the audit of the second version says of it."""


def send(settings, sightings):
    write_topic(settings, "nest-logs", [one_camera(*sighting) for sighting in sightings], partitions=3)


def counted(sightings):
    return counts_of((device, time.isoformat()) for device, time in sightings)


def is_in_second_version(sighting):
    return sighting[0] != "cam-3" and sighting[1] >= SECOND_HOUR


def second_version(settings):
    """The queries, of which the one for STATS leaves out cam-3 and the first hour, in version 2."""

    def of_second_version(seen, locations):
        return nest.camera_stats(seen.where((F.col("device_id") != "cam-3") & (F.col("start_time") >= F.lit(SECOND_HOUR))), locations)

    return tuple(replace(one, version=2, transform=of_second_version) if one.name == STATS else one for one in AS_CURRENT(settings))


@pytest.fixture(scope="module")
def both_versions(settings, tmp_path_factory):
    """Version 1 has counted SIGHTINGS, and so has version 2 beside it. The tests look at them in order: the last one removes records."""
    empty_topics(settings.kafka)
    settings = replace(settings, home=tmp_path_factory.mktemp("home"))
    send(settings, SIGHTINGS)
    succeed("run", STATS, "--once", settings=settings)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(nest, "queries", second_version)
        patched.setattr(audit_of_nest, "CAMERA_STATS", SECOND_STATS)
        succeed("run", f"{STATS}.v2", "--once", settings=settings)
        yield settings


def test_it_fills_its_own_topic_and_verify_compares_both(both_versions):
    assert results(both_versions) == counted(SIGHTINGS), "readers see the first version"
    outcome = verify(f"{STATS}.v2", settings=both_versions)[f"{STATS}.v2"]
    new = counted(filter(is_in_second_version, SIGHTINGS))
    assert (outcome["verdict"], outcome["rows"]["equal"]) == ("right", len(new))
    common = {key: count for key, count in counted(SIGHTINGS).items() if "2026-01-01T01" <= key[1] < "2026-01-01T04"}
    beside = outcome["beside"]
    assert (beside["sink"], beside["until"]) == (f"topic {STATS}", "2026-01-01T04:00:00Z")
    assert beside["rows"]["equal"] == sum(new.get(key) == count for key, count in common.items())
    assert beside["rows"]["different"] == sum(key in new and new[key] != count for key, count in common.items()) > 0
    assert beside["rows"]["missing"] == sum(key not in new for key in common)
    shown = succeed("verify", f"{STATS}.v2", settings=both_versions).stdout
    assert f"beside topic {STATS}, in windows until 2026-01-01T04:00:00Z: " in shown


def test_a_version_whose_source_has_lost_records_does_not_replace_the_rows_that_counted_them(both_versions):
    before, admin = results(both_versions), both_versions.kafka.admin()
    for cut in admin.delete_records([TopicPartition("nest-logs", number, 30) for number in range(3)]).values():
        cut.result()
    done = streamgauge("run", STATS, "--once", settings=both_versions)
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert f"query {STATS} given up: topic nest-logs no longer has its first " in last
    assert f"(`streamgauge run {STATS}.v2`), or give them up (`streamgauge reset {STATS}`)" in last
    assert results(both_versions) == before
    succeed("run", f"{STATS}.v2", "--once", settings=both_versions)
    succeed("reset", STATS, "--yes", settings=both_versions)
    succeed("run", STATS, "--once", settings=both_versions)
    assert results(both_versions), "what is left is counted"
