"""The examples of workshop/examples/kafka.py print what their page shows."""

import re
import subprocess
import sys
from pathlib import Path

from running import PROCESS_SECONDS, environment, succeed

PAGE = (Path(__file__).parents[2] / "workshop" / "examples" / "README.md").read_text()
SHOWN = PAGE[PAGE.index("## A topic as a batch") :]


def test_the_examples_on_a_topic_print_what_the_page_shows(fresh):
    (produce,) = re.findall(r"^streamgauge (produce .*)$", SHOWN, re.MULTILINE)
    (names,) = re.findall(r"-m workshop.examples (.*)$", SHOWN, re.MULTILINE)
    succeed(*produce.split(), settings=fresh)
    command = [sys.executable, "-m", "workshop.examples", *names.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PROCESS_SECONDS, check=False, env=environment(fresh))
    assert done.returncode == 0, done.stderr
    shown = re.findall(r"^### (\w+)\n.*?^```\n(.*?)^```$", SHOWN, re.MULTILINE | re.DOTALL)
    assert done.stdout.replace("\n\n", "\n").strip() == "\n".join(f"{name}:\n{text.strip()}" for name, text in shown)
