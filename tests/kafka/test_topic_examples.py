"""The examples of workshop/examples/kafka.py print what their page shows."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from running import PROCESS_SECONDS, environment, succeed

PAGE = (Path(__file__).parents[2] / "workshop" / "examples" / "README.md").read_text()
SHOWN = PAGE[PAGE.index("## A topic as a batch") :]


@pytest.mark.parametrize("prefix", ["", "team1."])
def test_the_examples_on_a_topic_print_what_the_page_shows(with_prefix, prefix):
    settings = with_prefix(prefix)
    (produce,) = re.findall(r"^streamgauge (produce .*)$", SHOWN, re.MULTILINE)
    (names,) = re.findall(r"-m workshop.examples (.*)$", SHOWN, re.MULTILINE)
    succeed("up", settings=settings)
    succeed(*produce.split(), settings=settings)
    command = [sys.executable, "-m", "workshop.examples", *names.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PROCESS_SECONDS, check=False, env=environment(settings))
    assert done.returncode == 0, done.stdout + done.stderr
    shown = re.findall(r"^### (\w+)\n.*?^```\n(.*?)^```$", SHOWN, re.MULTILINE | re.DOTALL)
    assert _rows(done.stdout.replace(prefix, "")) == _rows("".join(f"{name}:\n{text}" for name, text in shown))


def _rows(text):
    """The lines that are not rules, without what only aligns columns."""
    return [line.replace(" ", "") for line in text.splitlines() if line and not line.startswith("+")]
