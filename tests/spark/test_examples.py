"""The catalogue of examples, run as a learner runs it, all on one Spark session: it prints what docs/transforms.md shows."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from running import PROCESS_SECONDS, environment

from contract.settings import Settings
from workshop.examples.__main__ import EXAMPLES

PAGE = (Path(__file__).parents[2] / "docs" / "transforms.md").read_text()
SHOWN = {name: text.strip() for name, text in re.findall(r"^### (\w+)\n.*?^```\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)}


def run(tmp_path, *names):
    command = [sys.executable, "-m", "workshop.examples", *names]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=PROCESS_SECONDS, check=False, env=environment(Settings(home=tmp_path))
    )


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What each example prints."""
    done = run(tmp_path_factory.mktemp("home"))
    assert done.returncode == 0, done.stderr
    found = re.split(r"^(\w+):$", done.stdout, flags=re.MULTILINE)[1:]
    return dict(zip(found[::2], (text.strip() for text in found[1::2]), strict=True))


def test_every_example_is_on_the_page_with_what_its_docstring_says():
    assert list(SHOWN) == list(EXAMPLES)
    for name, example in EXAMPLES.items():
        assert " ".join(example.__doc__.split("\n\n")[0].split()) in PAGE, name


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_prints_what_the_page_shows(printed, name):
    assert printed[name] == SHOWN[name]


def test_an_unknown_name_is_one_clear_line(tmp_path):
    done = run(tmp_path, "json_tupel")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: no example json_tupel; there are json_tuple, ")
    assert len(done.stderr.splitlines()) == 1
