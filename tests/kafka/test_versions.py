"""A new version of a query beside the current one: into a topic of its own, compared by `verify`, and promoted."""

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from plain import counts_of, one_camera, results, write_topic
from pyspark.sql import functions as F  # noqa: N812
from running import eventually, one_line_error, running_queries, streamgauge, succeed, verify
from topic_reset import empty_topics

from contract.kafka.tombstones import write_rows
from contract.storage.checkpoint_names import CheckpointName
from pipeline.domains import nest
from pipeline.running.promotion import Promotion

STATS = "nest-camera-stats"
START = datetime(2026, 1, 1, tzinfo=UTC)
SECOND_HOUR = START + timedelta(hours=1)
SIGHTINGS = [(f"cam-{number % 7}", START + timedelta(minutes=number)) for number in range(300)]
AS_CURRENT = nest.queries


def send(settings, sightings):
    write_topic(settings, "nest-logs", [one_camera(*sighting) for sighting in sightings])


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
    """Version 1 has counted SIGHTINGS, and so has version 2 beside it. The tests look at them in order: the last one promotes version 2."""
    empty_topics(settings.kafka)
    settings = replace(settings, home=tmp_path_factory.mktemp("home"))
    send(settings, SIGHTINGS)
    succeed("run", STATS, "--once", settings=settings)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(nest, "queries", second_version)
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


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (f"{STATS}.v3", f"no query {STATS}.v3"),
        ("nest-archive", "does not run beside another version"),
        ("nest-crowds.v1", "has not run"),
    ],
)
def test_what_cannot_be_promoted_is_refused(both_versions, name, told):
    assert told in one_line_error(streamgauge("promote", name, "--yes", settings=both_versions))


def test_a_version_that_runs_is_not_promoted(both_versions):
    with running_queries(f"{STATS}.v2", settings=both_versions) as said:
        eventually(lambda: f"{STATS}.v2 runs" in said, "the query to run")
        assert f"query {STATS}.v2 is already running in another process" in one_line_error(
            streamgauge("promote", f"{STATS}.v2", "--yes", settings=both_versions)
        )


def test_a_version_that_has_also_run_by_itself_is_not_promoted(both_versions):
    folder = CheckpointName(STATS, 2, "update").folder(both_versions)
    shutil.copytree(CheckpointName(f"{STATS}.v2", 2, "update").folder(both_versions), folder)
    line = one_line_error(streamgauge("promote", f"{STATS}.v2", "--yes", settings=both_versions))
    assert f"{STATS} has already run as version 2, by itself" in line
    shutil.rmtree(folder)


def test_nothing_is_promoted_without_a_yes(both_versions):
    assert "--yes" in one_line_error(streamgauge("promote", f"{STATS}.v2", settings=both_versions))
    assert results(both_versions) == counted(SIGHTINGS)


def test_a_promotion_that_was_interrupted_is_repeated_and_its_query_continues(both_versions):
    (values,) = Promotion.of(f"{STATS}.v2", both_versions).changes().values()
    write_rows(both_versions.kafka, STATS, dict(list(values.items())[::2]))
    (journal,) = both_versions.checkpoints.glob(f"{STATS}.v2-v2-update.journal")
    journal.rename(both_versions.checkpoints / f"{STATS}-v2-update.journal")

    done = succeed("promote", f"{STATS}.v2", "--yes", settings=both_versions)
    assert f"`streamgauge run {STATS}` continues where {STATS}.v2 stopped" in done.stdout
    assert results(both_versions) == counted(filter(is_in_second_version, SIGHTINGS))

    later = [("cam-3", START + timedelta(hours=5)), ("cam-4", START + timedelta(hours=5))]
    send(both_versions, later)
    succeed("run", STATS, "--once", settings=both_versions)
    assert results(both_versions) == counted(filter(is_in_second_version, [*SIGHTINGS, *later]))
    outcome = verify(STATS, settings=both_versions)[STATS]
    assert (outcome["verdict"], outcome["beside"]) == ("right", None)
    assert outcome["records"] == len(SIGHTINGS) + len(later), "it did not recount, and its journal came with it"
    assert outcome["batch"] > 0
