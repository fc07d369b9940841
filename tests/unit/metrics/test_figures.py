"""What Kafka holds and a moment in, figures as Prometheus reads them out."""

import re
import runpy
import shutil
import subprocess
from datetime import UTC, datetime, timedelta

import orjson
import pytest
from documents import ROOT
from prometheus_client import CollectorRegistry, generate_latest

from contract.query_status import decode_state
from contract.topics import Verdict
from infrastructure.rows import decoder
from streamgauge.metrics.counters import MOST_REASONS, Counters
from streamgauge.metrics.exporter import Figures
from streamgauge.metrics.gauges import GAUGES, Observation

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
NOON_SECONDS = NOON.timestamp()
ROW = re.compile(r"^\| `(streamgauge_\w+)` \| (\w+) \| ([^|]*) \| ([^|]*) \|$", re.MULTILINE)


def text(seconds_before_noon):
    return f"{NOON - timedelta(seconds=seconds_before_noon):%Y-%m-%dT%H:%M:%S}.000Z"


def state(**fields):
    progress = {
        "time": text(2),
        "input_rows_per_second": 80.0,
        "processed_rows_per_second": None,
        "batch_ms": 400,
        "watermark": text(600),
        "state_rows": 10,
        "state_bytes": 1_500_000,
        "rows_dropped_by_watermark_total": 3,
        "source_lag": {},
    }
    row = {
        "query": "counts",
        "state": "running",
        "since": text(60),
        "time": text(1),
        "started_at": text(60),
        "process": {"host": "here", "pid": 7},
        **dict.fromkeys(("error", "error_detail", "error_at")),
        "source_offsets": {"a-b-0": 10, "a-b-1": 20},
        "progress": progress,
    }
    return decode_state(orjson.dumps(row | fields))


def verdict(**fields):
    return decoder(Verdict)(orjson.dumps({"query": "counts", "time": text(30), "verdict": "right", "rows": {"equal": 7}, **fields}))


def samples(registry):
    """The figures, by name and labels."""
    lines = (line.rpartition(" ") for line in generate_latest(registry).decode().splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


def gauges(states=(), verdicts=(), polls=((0, {}),)):
    figures, registry = Figures(), CollectorRegistry()
    registry.register(figures)
    figures.observation = Observation(NOON, states, verdicts, [(NOON - timedelta(seconds=before), ends) for before, ends in polls])
    return samples(registry)


class TestGauges:
    def test_a_query_is_in_one_state(self):
        found = gauges([state(), state(query="other", time=text(60))])
        assert {name for name, value in found.items() if name.startswith("streamgauge_query_state{") and value} == {
            'streamgauge_query_state{query="counts",state="running"}',
            'streamgauge_query_state{query="other",state="silent"}',
        }
        assert sum(name.startswith("streamgauge_query_state{") for name in found) == 14

    def test_times_are_in_seconds(self):
        found = gauges([state()])
        assert found['streamgauge_query_report_timestamp_seconds{query="counts"}'] == NOON_SECONDS - 1
        assert found['streamgauge_query_batch_timestamp_seconds{query="counts"}'] == NOON_SECONDS - 2
        assert found['streamgauge_query_watermark_timestamp_seconds{query="counts"}'] == NOON_SECONDS - 600
        assert found['streamgauge_query_watermark_delay_seconds{query="counts"}'] == 600
        assert found['streamgauge_query_state_bytes{query="counts"}'] == 1_500_000

    def test_lag_and_delay_are_those_at_the_moment(self):
        found = gauges([state()], polls=[(9, {"a-b-0": 10, "a-b-1": 20}), (6, {"a-b-0": 10, "a-b-1": 21}), (0, {"a-b-0": 10, "a-b-1": 25})])
        assert found['streamgauge_query_lag_records{partition="0",query="counts",topic="a-b"}'] == 0
        assert found['streamgauge_query_lag_records{partition="1",query="counts",topic="a-b"}'] == 5
        assert found['streamgauge_query_end_to_end_delay_seconds{query="counts"}'] == 6
        assert found['streamgauge_topic_end_offset{partition="1",topic="a-b"}'] == 25

    def test_a_query_that_has_read_all_has_no_delay(self):
        assert gauges([state()], polls=[(0, {"a-b-0": 10, "a-b-1": 20})])['streamgauge_query_end_to_end_delay_seconds{query="counts"}'] == 0

    def test_what_is_not_known_is_absent(self):
        found = gauges([state(progress=None, source_offsets={})])
        assert {name.partition("{")[0] for name in found} == {
            "streamgauge_exporter_connected",
            "streamgauge_query_state",
            "streamgauge_query_report_timestamp_seconds",
        }

    def test_without_the_end_of_each_partition_the_delay_is_not_known(self):
        found = gauges([state()], polls=[(0, {"a-b-0": 10})])
        assert 'streamgauge_query_end_to_end_delay_seconds{query="counts"}' not in found
        assert found['streamgauge_query_lag_records{partition="0",query="counts",topic="a-b"}'] == 0

    def test_a_table_has_one_verdict(self):
        found = gauges(verdicts=[verdict(verdict="wrong")])
        assert found['streamgauge_table_verdict{query="counts",verdict="wrong"}'] == 1
        assert found['streamgauge_table_verdict{query="counts",verdict="right"}'] == 0
        assert found['streamgauge_table_verdict_timestamp_seconds{query="counts"}'] == NOON_SECONDS - 30
        assert found['streamgauge_table_equal_rows{query="counts"}'] == 7


class Record:
    """A record of Kafka."""

    def __init__(self, value=None, **headers):
        self.value, self.headers = (lambda: value), (lambda: [(name, text.encode()) for name, text in headers.items()])
        self.offset, self.timestamp = (lambda: 0), (lambda: (1, 0))


class TestCounters:
    def test_they_add_up_the_events_of_a_query(self):
        registry = CollectorRegistry()
        counters = Counters(registry)
        batch = {
            "input_rows": 10,
            "sink_rows": 4,
            "rows_dropped_by_watermark": 1,
            "batch_ms": 300,
            "duration_ms": {},
            "source_lag": {},
            "state_bytes": 0,
            **dict.fromkeys(("input_rows_per_second", "processed_rows_per_second", "watermark_age_ms")),
        }
        in_real_time = {**batch, "sink_rows": None, "batch_ms": None}
        ended, failed = {"error": None}, {"error": "boom"}
        parts = [
            ("started", {}),
            ("progress", batch),
            ("progress", in_real_time),
            ("idle", {}),
            ("terminated", failed),
            ("terminated", ended),
        ]
        for event, more in parts:
            counters.count_event(Record(orjson.dumps({"event": event, "query": "counts", "time": text(0), **more})))
        found = samples(registry)
        assert found['streamgauge_query_input_rows_total{query="counts"}'] == 20
        assert found['streamgauge_query_output_rows_total{query="counts"}'] == 4
        assert found['streamgauge_query_late_rows_total{query="counts"}'] == 2
        assert found['streamgauge_query_starts_total{query="counts"}'] == 1
        assert found['streamgauge_query_failures_total{query="counts"}'] == 1
        assert found['streamgauge_query_batch_duration_seconds_count{query="counts"}'] == 1
        assert found['streamgauge_query_batch_duration_seconds_bucket{le="0.25",query="counts"}'] == 0
        assert found['streamgauge_query_batch_duration_seconds_bucket{le="0.5",query="counts"}'] == 1

    def test_a_query_has_them_from_the_beginning(self):
        registry = CollectorRegistry()
        Counters(registry).begin(["counts"])
        assert samples(registry)['streamgauge_query_failures_total{query="counts"}'] == 0

    @pytest.mark.parametrize("value", [None, b"no JSON", b"[]", b'{"event": "progress", "query": "x", "time": "2026-11-21T12:00:00Z"}'])
    def test_what_is_no_event_counts_nowhere(self, value):
        registry = CollectorRegistry()
        Counters(registry).count_event(Record(value))
        assert not any(samples(registry).values())

    def test_dead_letters_count_by_topic_and_reason_up_to_a_number_of_reasons(self):
        registry = CollectorRegistry()
        counters = Counters(registry)
        for number in range(MOST_REASONS + 2):
            counters.count_letter(Record(topic="a", partition="0", offset="1", timestamp="", reason=f"reason {number}\x1b"))
        counters.count_letter(Record(topic="a", partition="0", offset="1", timestamp="", reason="reason 0\x1b"))
        found = samples(registry)
        assert found['streamgauge_dead_letters_total{reason="reason 0\N{REPLACEMENT CHARACTER}",topic="a"}'] == 2
        assert found['streamgauge_dead_letters_total{reason="other",topic="other"}'] == 2
        assert len(found) == MOST_REASONS + 1


def every_family():
    registry = CollectorRegistry()
    Counters(registry)
    registry.register(Figures())
    return [(one.name + "_total" * (one.type == "counter"), one.type, one.documentation) for one in registry.collect()]


def test_the_page_has_every_figure_with_its_meaning():
    documented = ROW.findall((ROOT / "docs" / "prometheus.md").read_text())
    assert [(name, kind, meaning) for name, kind, _, meaning in documented] == every_family()
    labels = {name: tuple(of.split(", ")) for name, _, of, _ in documented}
    assert {one.name: labels[one.name] for one in GAUGES} == {one.name: one.labels for one in GAUGES}


def test_every_figure_that_an_alert_names_exists():
    named = set(re.findall(r"streamgauge_\w+", (ROOT / "docs/prometheus/alerts.yaml").read_text()))
    assert named
    assert named <= {name for name, _, _ in every_family()}


def test_the_board_of_grafana_is_the_one_that_its_script_writes_and_shows_every_figure():
    script = runpy.run_path(str(ROOT / "docs/prometheus/grafana.py"))
    assert script["FILE"].read_text() == script["text"](), "write it anew: .venv/bin/python docs/prometheus/grafana.py"
    shown = [script["figure_of"](panel) for panel in (*script["NUMBERS"], *script["LINES"])]
    assert set(shown) == script["figures"]().keys()


@pytest.mark.skipif(not shutil.which("promtool"), reason="no promtool; apt install prometheus")
class TestByPromtool:
    def test_the_alerts_are_raised_when_they_should_be(self):
        command = ["promtool", "test", "rules", ROOT / "tests/unit/metrics/alerts_test.yaml"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def test_the_configuration_is_one(self):
        done = subprocess.run(
            ["promtool", "check", "config", ROOT / "docs/prometheus/prometheus.yaml"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def test_names_and_help_follow_the_conventions(self):
        registry = CollectorRegistry()
        figures, counters = Figures(), Counters(registry)
        registry.register(figures)
        figures.observation = Observation(NOON, [state()], [verdict()], [(NOON, {"a-b-0": 10})])
        counters.begin(["counts"])
        done = subprocess.run(["promtool", "check", "metrics"], input=generate_latest(registry), capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
