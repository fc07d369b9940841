"""`streamgauge verify` of every domain at once: all is right, and each thing that somebody then changes is named."""

import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import orjson
import pyarrow.parquet as pq
import pytest
from plain import dropped, folded, read_topic, write_topic
from running import streamgauge, succeed
from topic_reset import delete_subjects, empty_topics
from verifying import differences, run_once, verified, write

from audit.verdicts.comparison import MOST_SHOWN
from contract.checkpoints.contents import Checkpoint
from contract.checkpoints.names import CheckpointName
from infrastructure.kafka.result_table import read_to_end
from infrastructure.lake_environment import HAS_DELTA
from pipeline.catalog import all_queries, is_new_version
from pipeline.database.sink import DatabaseTable

FAULTS = ("--late", "0.05", "--too-late", "0.02", "--duplicates", "0.03", "--corrupt", "0.02")
STATS = "nest-camera-stats"


def every_query(settings):
    """The names of all queries of the domains, those on request among them."""
    of_domains = [query for query in all_queries(settings) if not is_new_version(query) and not isinstance(query.sink, DatabaseTable)]
    return [query.name for query in of_domains if HAS_DELTA or not query.sink.delta_table(settings)]


@pytest.fixture(scope="module")
def domains(registry, tmp_path_factory):
    """All domains, with everything that goes wrong on the way, in two batches or three; and what the producers said."""
    empty_topics(registry.kafka)
    delete_subjects(registry.registry_url)
    settings = replace(registry, home=tmp_path_factory.mktemp("home"))
    said = {}
    # In a far future of Kafka's timestamps: what simulations send counts by the clock that they state.
    start = datetime(2300, 1, 1, tzinfo=UTC)
    common = ("--unpaced", "--json", "--limit", "600", "--start", start.isoformat(), *FAULTS)
    for domain, more in {
        "nest": ("--speed-up", "1000", "--rate", "100"),
        "taxi": ("--odd", "0.02"),
        "wikimedia": ("--rate", "1", "--speed-up", "1"),
    }.items():
        said[domain] = json.loads(succeed("produce", domain, *common, *more, settings=settings).stdout.splitlines()[-1])
    # What simulations send too late may be in time for so few batches. The last of each partition, a month before the others, are not.
    dropoff_ms = round((start - timedelta(days=30)).timestamp() * 1000)
    late_trips = [{"lpep_dropoff_datetime": dropoff_ms, "PULocationID": 74, "total_amount": dollars} for dollars in range(3)]
    write_topic(settings, "nyc-taxi", map(orjson.dumps, late_trips), partitions=3, clock=lambda _: start)
    said["taxi"] |= {name: said["taxi"][name] + len(late_trips) for name in ("events", "trips", "trips_too_late")}
    # In three batches: Spark drops by the watermark of the batch before the last one.
    run_once(settings, "taxi-borough-stats", max_offsets_per_trigger=250)
    run_once(settings, *every_query(settings), max_offsets_per_trigger=350)
    return settings, said


class TestDomains:
    def test_everything_is_right_and_the_counts_are_those_that_the_producers_gave(self, domains):
        settings, said = domains
        found = verified(settings)
        assert {name: outcome.verdict for name, outcome in found.items()} == dict.fromkeys(found, "right"), found
        assert found.keys() == set(every_query(settings))
        for domain in said:
            letters = found[f"{domain}-dead-letters"]
            assert letters.records == said[domain]["events"]
            assert letters.rows.equal == said[domain]["corrupt"] > 0
        for query, domain, facts in (
            (STATS, "nest", "people_seen"),
            ("taxi-borough-stats", "taxi", "trips"),
            ("wikimedia-edit-stats", "wikimedia", "edits"),
        ):
            lateness = found[query].lateness
            assert lateness.events == said[domain][facts]
            assert lateness.late_events <= said[domain][f"{facts}_too_late"]
            assert lateness.late_rows > 0 or domain != "taxi"
            assert lateness.late_rows == dropped(settings, query)
        assert found["wikimedia-wiki-stats"].lateness.late_rows == dropped(settings, "wikimedia-wiki-stats")

    def test_a_changed_value_a_removed_row_an_added_one_and_rubbish_are_named(self, domains):
        settings, _ = domains
        table = folded(settings, "taxi-borough-stats")
        changed, removed, spoilt = sorted(table)[:3]
        added = changed.replace(b'"borough":"', b'"borough":"Not ')
        write(
            settings,
            "taxi-borough-stats",
            changed,
            orjson.dumps({**table[changed], "fare_amount_sum": table[changed]["fare_amount_sum"] + 0.01}),
        )
        write(settings, "taxi-borough-stats", removed, None)
        write(settings, "taxi-borough-stats", spoilt, b"rubbish")
        write(settings, "taxi-borough-stats", added, orjson.dumps(table[changed]))
        done = streamgauge("verify", "taxi-borough-stats", settings=settings)
        assert done.returncode == 1, done.stderr
        assert "1 missing, 1 extra, 2 different" in done.stdout
        for key in (changed, removed, spoilt, added):
            assert key.decode() in done.stdout
        assert f'{{"fare_amount_sum":{table[changed]["fare_amount_sum"]}}}' in done.stdout, "of two rows only what differs is shown"
        (kept,) = [row for row in read_to_end(settings.kafka, "verdicts").rows() if row["query"] == "taxi-borough-stats"]
        assert kept["verdict"] == "wrong"
        assert kept["batch"] == Checkpoint(CheckpointName("taxi-borough-stats", 2, "update").folder(settings)).last_committed
        assert {key: kept["rows"][key] for key in ("missing", "extra", "different")} == {"missing": 1, "extra": 1, "different": 2}

    def test_an_avro_row_under_the_key_of_another_is_named(self, domains):
        settings, _ = domains
        (key, value), (_, another), *_ = {message.key(): message.value() for message in read_topic(settings, "wikimedia.processed")}.items()
        assert value != another
        write(settings, "wikimedia.processed", key, another)
        found = verified(settings, "wikimedia-edit-stats")
        assert found.rows.wrong == 1
        assert differences(found, "different").keys() == {key.decode()}

    def test_files_that_are_gone_and_damaged_are_named_and_the_rows_that_they_held_are_missing(self, domains):
        settings, _ = domains
        table = settings.lake / "wikimedia" / "changes"
        gone, damaged = sorted(table.glob("*/*.parquet"), key=lambda path: path.stat().st_size)[-2:]
        held = sum(pq.read_metadata(path).num_rows for path in (gone, damaged))
        gone.unlink()
        os.truncate(damaged, 100)
        found = verified(settings, "wikimedia-archive")
        assert found.verdict == "wrong"
        assert found.rows.missing == held
        assert [fault.partition(",")[0] for fault in found.faults] == [
            "files of the table that are gone",
            "files of the table that are not readable",
        ]
        assert [str(path) in fault for path, fault in zip((gone, damaged), found.faults, strict=True)] == [True, True]
        named = differences(found, "missing")
        assert len(named) == MOST_SHOWN
        assert all(where.startswith("wikimedia-") and expected["meta"]["id"] for where, (expected, _) in named.items())

    def test_a_dead_letter_that_nobody_should_have_written_is_named(self, domains):
        settings, _ = domains
        letter = next(one for one in read_topic(settings, "dead-letters") if b"nest-logs" in one.key())
        of = {"offset": 0, "partition": 1, "topic": "nest-logs"}
        write(settings, "dead-letters", json.dumps(of).encode(), b"a good record", headers=letter.headers())
        found = verified(settings, "nest-dead-letters")
        assert found.rows.wrong == 1
        assert "nest-logs-1 offset 0" in differences(found, "extra")
