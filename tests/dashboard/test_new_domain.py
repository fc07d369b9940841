"""A fourth domain, as docs/add-a-domain.md adds it: its files and one line, from the producer to the page."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from running import PATIENCE_MS, PROCESS_SECONDS, environment, few_rows

from dashboard.server import dashboard_url
from streamgauge.platform.processes import GuardedProcess

ROOT = Path(__file__).parents[2]
FILES = ROOT / "tests" / "weather"
IN_ONE_PROCESS = """
import contextlib, io, json, sys
from streamgauge.cli import main
printed = []
for command in json.loads(sys.argv[1]):
    sys.argv = ["streamgauge", *command.split()]
    with contextlib.redirect_stdout(io.StringIO()) as stdout:
        try:
            main()
        except SystemExit as end:
            if end.code:
                raise
    printed.append(stdout.getvalue())
print(json.dumps(printed))
"""
"""Runs commands one after the other, and prints what each has printed."""
COMMANDS = (
    "up",
    "produce weather --rate 500 --limit 500 --duplicates 0.1 --corrupt 0.1 --json",
    "run weather-city-stats --once",
    "verify --format json",
    "report weather-city-stats --format json",
)
LINE = ('    "wikimedia",\n', '    "wikimedia",\n    "weather",\n')


@pytest.fixture
def tree(tmp_path):
    """The project with the files of the domain and its line."""
    tree = tmp_path / "tree"
    for room in ("infrastructure", "contract", "producers", "pipeline", "audit", "dashboard", "streamgauge", "data"):
        shutil.copytree(ROOT / room, tree / room)
    shutil.copytree(FILES, tree, dirs_exist_ok=True)
    names = tree / "contract" / "domains" / "__init__.py"
    assert LINE[0] in names.read_text(), f"{names} has no longer the line that this test changes"
    names.write_text(names.read_text().replace(*LINE))
    return tree


def test_it_is_produced_counted_verified_reported_and_shown(tree, fresh_registry, tab, until):
    own = {
        "KAFKA_BOOTSTRAP_SERVERS": fresh_registry.bootstrap_servers,
        "SCHEMA_REGISTRY_URL": fresh_registry.registry_url,
        "PYTHONPATH": str(tree),
        "PYTHONSAFEPATH": "1",  # the working directory holds the project without the domain
    }

    command = [sys.executable, "-c", IN_ONE_PROCESS, json.dumps(COMMANDS)]
    variables = environment(few_rows(fresh_registry), **own)
    done = subprocess.run(command, cwd=tree, env=variables, capture_output=True, text=True, timeout=PROCESS_SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    _, sent, _, found, rows = (printed and json.loads(printed) for printed in ["", *json.loads(done.stdout)[1:]])
    verdicts = {one["query"]: one for one in found}
    assert {query: one["verdict"] for query, one in verdicts.items() if query.startswith("weather")} == {
        "weather-city-stats": "right",
        "weather-dead-letters": "right",
    }
    assert verdicts["weather-dead-letters"]["rows"]["equal"] == sent["corrupt"] > 0
    assert sum(row["readings"] for row in rows) == sent["readings"] == 500
    assert {row["city"] for row in rows} == {"Bergen", "Lisbon", "Tartu", "Trieste", "unknown"}

    url = dashboard_url(fresh_registry)
    command = [sys.executable, "-m", "streamgauge.cli", "dashboard"]
    served = GuardedProcess.start(command, log=tree / "dashboard.log", environment=environment(fresh_registry, **own))
    try:

        def answers():
            try:
                return "" if tab.goto(url) else "no answer"
            except Exception as error:  # whatever Chromium calls it while nobody listens
                return str(error)

        until(answers, "".__eq__, f"the dashboard was to answer at {url}")
        card = tab.get_by_test_id("stVerticalBlock").filter(has=tab.get_by_role("heading", name="Weather", exact=True)).last
        tab.get_by_role("figure", name="weather-city-stats is stopped").wait_for(timeout=PATIENCE_MS)
        card.get_by_text("Verified").filter(visible=True).first.wait_for(timeout=PATIENCE_MS)
        tab.get_by_test_id("stTopNavLink").filter(has_text="Weather").click(timeout=PATIENCE_MS)
        tab.get_by_role("heading", name="Weather").wait_for(timeout=PATIENCE_MS)
        tab.get_by_test_id("stDataFrame").wait_for(timeout=PATIENCE_MS)
    finally:
        served.stop()
