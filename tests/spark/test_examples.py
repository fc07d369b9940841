"""The catalogue of examples prints what workshop/examples/README.md shows."""

import io
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

from running import PROCESS_SECONDS, environment

from infrastructure.settings import Settings
from workshop.examples.__main__ import EXAMPLES, ON_KAFKA, main

PAGE = (Path(__file__).parents[2] / "workshop" / "examples" / "README.md").read_text()
SHOWN = {name: text.strip() for name, text in re.findall(r"^### (\w+)\n.*?^```\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)}
PRINTED_BY_JAVA = "console_sink"


def by_name(printed):
    """What each example prints."""
    found = re.split(r"^(\w+):$", printed, flags=re.MULTILINE)[1:]
    return dict(zip(found[::2], (text.strip() for text in found[1::2]), strict=True))


def run(tmp_path, name):
    """An example in a process of its own, as a learner runs it."""
    command = [sys.executable, "-m", "workshop.examples", name]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=PROCESS_SECONDS, check=False, env=environment(Settings(home=tmp_path))
    )


def test_every_example_is_on_the_page_with_what_its_docstring_says():
    every = EXAMPLES | ON_KAFKA
    assert list(SHOWN) == list(every)
    for name, example in every.items():
        assert " ".join(example.__doc__.split("\n\n")[0].split()) in PAGE, name


def test_examples_print_what_the_page_shows(spark, tmp_path):
    printed = tmp_path / "printed"
    jvm = spark.sparkContext._jvm
    java, console = jvm.java.io.PrintStream(str(printed)), getattr(getattr(jvm.scala, "Console$"), "MODULE$")
    before = console.out()
    console.setOutDirect(java)
    try:
        with redirect_stdout(io.StringIO()) as out:
            main([])
    finally:
        console.setOutDirect(before)
        java.close()
    shown = by_name(out.getvalue())
    assert shown[PRINTED_BY_JAVA] == ""
    assert shown | {PRINTED_BY_JAVA: printed.read_text().strip()} == {name: SHOWN[name] for name in EXAMPLES}


def test_an_unknown_name_is_one_clear_line(tmp_path):
    done = run(tmp_path, "json_tupel")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: no example json_tupel; there are json_tuple, ")
    assert len(done.stderr.splitlines()) == 1
