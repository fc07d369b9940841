"""`streamgauge verify` of every domain at once: all is right after two runs, and each thing that somebody then changes is named."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import orjson
import pytest
from plain import dropped, folded, read_topic
from running import streamgauge
from topic_reset import delete_subjects, empty_topics
from verifying import differences, run_once, verified, write

from contract.kafka.result_table import read_to_end
from pipeline.catalog import queries

FAULTS = ("--late", "0.05", "--too-late", "0.02", "--duplicates", "0.03", "--corrupt", "0.02")
STATS = "nest-camera-stats"


@pytest.fixture(scope="module")
def domains(spark, registry, tmp_path_factory):
    """All domains, with everything that goes wrong on the way, run in two parts; and what the producers said."""
    empty_topics(registry.kafka)
    delete_subjects(registry.registry_url)
    settings = replace(registry, home=tmp_path_factory.mktemp("home"))
    said = {"nest": [], "taxi": [], "wikimedia": []}
    for part in range(2):
        # In a far future of Kafka's timestamps: what simulations send counts by the clock that they state.
        start = (datetime(2300, 1, 1, tzinfo=UTC) + timedelta(days=part)).isoformat()
        for domain, more in {
            "nest": ("--limit", "1500", "--speed-up", "1000", "--rate", "100"),
            "taxi": ("--limit", "1500", "--odd", "0.02"),
            "wikimedia": ("--limit", "1500", "--rate", "1", "--speed-up", "1"),
        }.items():
            arguments = ("--unpaced", "--json", "--seed", str(part), "--start", start, *more, *FAULTS)
            done = streamgauge("produce", domain, *arguments, settings=settings)
            assert done.returncode == 0, done.stderr
            said[domain].append(json.loads(done.stdout.splitlines()[-1]))
        run_once(spark, settings, max_offsets_per_trigger=800)
    return (
        settings,
        {domain: {name: sum(one[name] for one in parts) for name in parts[0] if name != "source"} for domain, parts in said.items()},
    )


class TestDomains:
    def test_everything_is_right_and_the_counts_are_those_that_the_producers_gave(self, spark, domains):
        settings, said = domains
        found = verified(spark, settings)
        assert {name: outcome.verdict for name, outcome in found.items()} == dict.fromkeys(found, "right"), found
        assert found.keys() == {query.name for query in queries(settings)}
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
            assert lateness.late_rows > 0 or domain != "taxi", (
                "the other two repeat themselves, or have few batches: what they say too late is known, or in time"
            )
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
        found = json.loads(streamgauge("verify", "taxi-borough-stats", "--format", "json", settings=settings).stdout)
        assert found[0]["verdict"] == "wrong"
        assert {key: found[0]["rows"][key] for key in ("missing", "extra", "different")} == {"missing": 1, "extra": 1, "different": 2}
        (kept,) = [row for row in read_to_end(settings.kafka, "verdicts").rows() if row["query"] == "taxi-borough-stats"]
        assert {name: kept[name] for name in ("verdict", "batch", "rows")} == {
            name: found[0][name] for name in ("verdict", "batch", "rows")
        }

    def test_an_avro_row_under_the_key_of_another_is_named(self, spark, domains):
        settings, _ = domains
        (key, value), (_, another), *_ = {message.key(): message.value() for message in read_topic(settings, "wikimedia.processed")}.items()
        assert value != another
        write(settings, "wikimedia.processed", key, another)
        found = verified(spark, settings, "wikimedia-edit-stats")
        assert found.rows.wrong == 1
        assert differences(found, "different").keys() == {key.decode()}

    def test_a_file_that_is_gone_is_named_with_the_rows_that_it_held(self, spark, domains):
        settings, _ = domains
        table = settings.lake / "wikimedia" / "changes"
        victim = max(table.glob("*/*.parquet"), key=lambda path: path.stat().st_size)
        content = victim.read_bytes()
        victim.unlink()
        found = verified(spark, settings, "wikimedia-archive")
        assert found.verdict == "wrong"
        assert found.rows.missing > 0
        assert str(victim.relative_to(table)) in found.faults[0]
        assert all(where.startswith("wikimedia-") for where in differences(found, "missing"))
        victim.write_bytes(content)
        assert verified(spark, settings, "wikimedia-archive").verdict == "right"

    def test_a_file_that_is_damaged_is_named(self, spark, domains):
        settings, _ = domains
        table = settings.lake / "taxi" / "trips"
        victim = max(table.glob("*/*.parquet"), key=lambda path: path.stat().st_size)
        with victim.open("r+b") as file:
            file.truncate(100)
        found = verified(spark, settings, "taxi-archive")
        assert found.verdict == "wrong"
        assert found.rows.missing > 0
        assert str(victim.relative_to(table)) in found.faults[0]

    def test_a_dead_letter_that_nobody_should_have_written_is_named(self, spark, domains):
        settings, _ = domains
        letter = next(one for one in read_topic(settings, "dead-letters") if b"nest-logs" in one.key())
        of = {"offset": 0, "partition": 1, "topic": "nest-logs"}
        write(settings, "dead-letters", json.dumps(of).encode(), b"a good record", headers=letter.headers())
        found = verified(spark, settings, "nest-dead-letters")
        assert found.rows.wrong == 1
        assert "nest-logs-1 offset 0" in differences(found, "extra")
        assert verified(spark, settings, "wikimedia-dead-letters").verdict == "right"
