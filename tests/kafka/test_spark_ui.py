"""Spark's own UI: off, or on loopback, with the queries in it, and nothing to kill."""

import re
import subprocess
import sys

import requests
from plain import START, one_camera, write_topic
from running import RETRY_SECONDS, below, environment, eventually

from contract.process.ports import free_ports

ANSWER_SECONDS = 60


def test_it_shows_the_queries_on_loopback_only_and_kills_nothing(fresh):
    write_topic(fresh, "nest-logs", [one_camera("cam-a", START)])
    port = free_ports(1)[0]
    command = [sys.executable, "-m", "streamgauge.cli", "run", "nest-camera-stats"]
    started = environment(fresh, STREAMGAUGE_SPARK_UI_PORT=str(port))
    with subprocess.Popen(command, env=started, stderr=subprocess.PIPE, text=True) as run:
        try:
            told = next(line for line in run.stderr if "Spark's UI" in line)
            address = re.search(r"http://\S+", told)[0]
            assert address == f"http://127.0.0.1:{port}/StreamingQuery/"

            def page():
                text = requests.get(address, timeout=ANSWER_SECONDS).text
                return text if "nest-camera-stats" in text else ""

            shown = eventually(page, "the query to be in the table")
            assert "Streaming Query" in shown
            (jvm,) = below(run.pid, "java")
            assert {of.laddr.ip for of in jvm.net_connections() if of.laddr.port == port and of.status == "LISTEN"} <= {
                "127.0.0.1",
                "::ffff:127.0.0.1",
            }
            assert "kill" not in requests.get(f"http://127.0.0.1:{port}/jobs/", timeout=ANSWER_SECONDS).text.lower()
        finally:
            run.terminate()
            run.communicate(timeout=RETRY_SECONDS)
