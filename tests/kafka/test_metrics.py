"""A real Prometheus reads what `streamgauge metrics` serves of a real run."""

import json
import shutil
import signal
import subprocess
import sys
import urllib.parse
import urllib.request
from contextlib import contextmanager

import pytest
from documents import ROOT
from plain import START, one_camera, write_topic
from running import environment, eventually, succeed, verify

from infrastructure.process.ports import free_ports

STATS, LETTERS = "nest-camera-stats", "nest-dead-letters"
BOARD = ROOT / "docs" / "prometheus" / "grafana.json"
CONFIG = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs: [{{job_name: streamgauge, static_configs: [{{targets: ["127.0.0.1:{port}"]}}]}}]
"""

pytestmark = pytest.mark.skipif(not shutil.which("prometheus"), reason="no Prometheus; apt install prometheus")


@contextmanager
def running(*command, **more):
    """A process until the end of the block, which SIGTERM ends well."""
    process = subprocess.Popen([*map(str, command)], **more)
    try:
        yield process
        assert process.poll() is None, f"{command[0]} has ended"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()


class Prometheus:
    """Its API. Not there yet: nothing."""

    def __init__(self, port):
        self._address = f"http://127.0.0.1:{port}/api/v1"

    def asked(self, path):
        try:
            with urllib.request.urlopen(f"{self._address}/{path}") as answer:
                return json.loads(answer.read())["data"]
        except OSError:
            return {}

    def series(self, expression):
        """What an expression gives. Nothing if there is nothing yet, or if Prometheus refuses it."""
        return self.asked(f"query?{urllib.parse.urlencode({'query': expression})}").get("result", [])

    def figure(self, expression):
        """The one figure that an expression gives. None if there is none yet."""
        found = self.series(expression)
        assert len(found) <= 1, found
        return float(found[0]["value"][1]) if found else None

    def becomes(self, expression, figure):
        eventually(lambda: self.figure(expression) == figure, f"{expression} to be {figure}")


@pytest.fixture
def prometheus(fresh, tmp_path):
    """A Prometheus that reads an exporter of the broker."""
    port, own_port = free_ports(2)
    config = tmp_path / "prometheus.yaml"
    config.write_text(CONFIG.format(rules=ROOT / "docs" / "prometheus" / "alerts.yaml", port=port))
    options = [f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}", f"--web.listen-address=127.0.0.1:{own_port}"]
    exporter = [sys.executable, "-m", "streamgauge.cli", "metrics", "--port", port]
    with running(*exporter, env=environment(fresh)), running("prometheus", *options, stderr=subprocess.DEVNULL):
        found = Prometheus(own_port)
        found.becomes("streamgauge_exporter_connected", 1)
        yield found


def test_prometheus_has_the_figures_of_a_run_and_its_alerts(fresh, prometheus):
    write_topic(fresh, "nest-logs", [*(one_camera(f"cam-{number}", START) for number in range(5)), b"no JSON"], to=0)
    succeed("run", STATS, LETTERS, "--once", settings=fresh)
    prometheus.becomes(f'streamgauge_query_state{{query="{STATS}", state="stopped"}}', 1)
    prometheus.becomes(f'streamgauge_query_input_rows_total{{query="{LETTERS}"}}', 6)
    prometheus.becomes(f'streamgauge_query_output_rows_total{{query="{STATS}"}}', 1)
    prometheus.becomes(f'streamgauge_query_starts_total{{query="{STATS}"}}', 1)
    prometheus.becomes(f'streamgauge_query_failures_total{{query="{STATS}"}}', 0)
    prometheus.becomes(f'streamgauge_query_batch_duration_seconds_count{{query="{STATS}"}} > bool 0', 1)
    prometheus.becomes('sum by (topic) (streamgauge_dead_letters_total{topic="nest-logs", reason="not JSON"})', 1)
    prometheus.becomes(f'sum(streamgauge_query_lag_records{{query="{STATS}"}})', 0)
    prometheus.becomes(f'streamgauge_query_end_to_end_delay_seconds{{query="{STATS}"}}', 0)

    assert verify(STATS, settings=fresh)[STATS]["verdict"] == "right"
    prometheus.becomes(f'streamgauge_table_verdict{{query="{STATS}", verdict="right"}}', 1)
    prometheus.becomes(f'streamgauge_table_equal_rows{{query="{STATS}"}}', 1)

    write_topic(fresh, "nest-logs", [one_camera("cam-9", START)] * 3, to=0)
    prometheus.becomes(f'streamgauge_query_lag_records{{query="{STATS}", topic="nest-logs", partition="0"}}', 3)
    prometheus.becomes(f'streamgauge_query_end_to_end_delay_seconds{{query="{STATS}"}} > bool 0', 1)

    of_board = [target["expr"] for panel in json.loads(BOARD.read_text())["panels"] for target in panel["targets"]]
    for expression in of_board:
        as_asked = expression.replace("$query", ".*").replace("$__rate_interval", "1m")
        eventually(lambda: prometheus.series(as_asked), f"series of {as_asked}")  # noqa: B023

    rules = [rule for group in prometheus.asked("rules")["groups"] for rule in group["rules"]]
    assert {(rule["health"], rule["state"]) for rule in rules} == {("ok", "inactive")}, rules
