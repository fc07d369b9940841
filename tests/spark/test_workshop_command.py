"""`streamgauge workshop` as a learner uses it, with the process that grades. What the labs' commands print: test_workshop.py."""

import os
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from nbclient import NotebookClient
from running import environment, eventually, one_line_error, settings_on_free_ports, streamgauge
from served import served

from streamgauge.platform.processes import PidFile, has_ended, stop_process
from streamgauge.workshop.labs import lab_of
from workshop import notebooks


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    """A home whose process that grades is ended at the end."""
    home = tmp_path_factory.mktemp("home")
    yield replace(settings_on_free_ports(home), home=home)
    if process := PidFile(home / "workshop" / "grader.pid").process():
        stop_process(process, 10)


@pytest.fixture
def workshop(settings, tmp_path, monkeypatch):
    """Runs `streamgauge workshop` in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: streamgauge("workshop", *map(str, arguments), settings=settings)


def grader(settings):
    return PidFile(settings.home / "workshop" / "grader.pid").process()


def test_each_notebook_has_the_commands_of_its_readme():
    for lab in notebooks.LABS:
        cells = [cell.source.rpartition("streamgauge workshop ")[2].split()[0] for cell in commands_of(notebooks.notebook(lab))]
        assert cells == ["start", "check", "check"], lab.folder.name


def test_a_notebook_prints_what_the_readme_says(settings, tmp_path):
    lab = notebooks.LABS[0]
    notebook = notebooks.notebook(lab)
    shown = printed(notebook)
    notebook.cells.insert(-1, notebooks.file_cell((lab.folder / "solution.py").read_text()))  # as a learner does before the last check
    folder = tmp_path / lab.exercise.parent
    folder.mkdir(parents=True)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    NotebookClient(notebook, resources={"metadata": {"path": folder}}).execute(env=environment(settings, PATH=path))
    started, failed, passed = printed(notebook)
    assert [started, failed, passed] == shown
    assert "not done yet: " in failed
    assert "checks pass" in passed


def printed(notebook):
    """What the cells that run a command print, or are to print."""
    return ["".join(output.text for output in cell.outputs if output.name == "stdout") for cell in commands_of(notebook)]


def commands_of(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.startswith("%%sh")]


def test_notebooks_that_are_there_stay(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    notebooks.main()
    written = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert [path.parent for path in written] == [lab.exercise.parent for lab in notebooks.LABS]
    written[0].write_text("mine")
    notebooks.main()
    assert written[0].read_text() == "mine"


def test_the_list_shows_how_far_the_learner_is(workshop):
    assert workshop().stdout.startswith(" 1  one record\n 2  join and count\n")
    assert workshop().stdout.endswith("next: streamgauge workshop start 1\n")
    workshop("start", 1)
    assert workshop().stdout.splitlines()[0].endswith("started")
    assert workshop().stdout.endswith("next: streamgauge workshop check 1\n")
    shutil.copy(lab_of(1).folder / "solution.py", lab_of(1).exercise)
    assert workshop("check", 1).returncode == 0
    assert workshop().stdout.splitlines()[0].endswith("done")
    assert workshop().stdout.endswith("next: streamgauge workshop start 2\n")


def test_who_has_begun_with_a_later_lab_goes_on_with_that(workshop):
    workshop("start", 2)
    assert workshop().stdout.endswith("next: streamgauge workshop check 2\n")


def test_a_start_and_a_reset_lose_nothing_that_the_learner_wrote(workshop):
    workshop("start", 1)
    exercise = lab_of(1).exercise
    exercise.write_text("mine")
    assert "your file is as you left it" in workshop("start", 1).stdout
    assert exercise.read_text() == "mine"
    assert workshop("reset", 1).stdout.endswith("your version is in my-workshop/01-one-record/exercise.before-reset.py\n")
    assert exercise.read_text() == (lab_of(1).folder / "exercise.py").read_text()
    assert exercise.with_name("exercise.before-reset.py").read_text() == "mine"
    assert workshop("reset", 1).stdout.endswith("is as at the start\n")


def test_the_solution_can_be_written_to_a_file_and_changes_nothing(workshop):
    printed = workshop("solution", 1)
    assert printed.stdout == (lab_of(1).folder / "solution.py").read_text()
    assert "why: " in printed.stderr
    assert not Path("my-workshop").exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("check", 1), "01-one-record/exercise.py does not exist; `streamgauge workshop start 1` creates it"),
        (("check", 99), "no lab 99; there are 1"),
        (("start", "one"), "Input should be a valid integer"),
    ],
)
def test_what_cannot_be_done_is_one_line(workshop, arguments, expected):
    assert expected in one_line_error(workshop(*arguments))


def test_a_syntax_error_names_its_line(workshop):
    workshop("start", 1)
    lab_of(1).exercise.write_text("def sightings(records):\n    return (\n")
    ran = workshop("check", 1)
    assert ran.returncode == 1
    assert "SyntaxError: '(' was never closed" in ran.stdout
    assert "exercise.py, line 2: return (" in ran.stdout


def test_a_function_that_is_missing_is_named(workshop):
    workshop("start", 1)
    lab_of(1).exercise.write_text("def sighting(records):\n    return records\n")
    assert "came:      a file without `sightings`" in workshop("check", 1).stdout


def test_what_the_code_prints_stands_in_the_message(workshop):
    workshop("start", 1)
    lab_of(1).exercise.write_text("def sightings(records):\n    print('so far', records.columns)\n")
    ran = workshop("check", 1)
    assert "expected: a DataFrame; did you forget `return`?" in ran.stdout
    assert "your code printed:\nso far ['key'" in ran.stdout


def test_one_process_serves_all_checks(workshop, settings):
    workshop("start", 1)
    first = grader(settings)
    workshop("check", 1)
    workshop("check", 1)
    assert grader(settings) == first
    named = settings.home / "workshop" / "grader"
    assert Path(named.read_text()).parent.stat().st_mode & 0o077 == 0, "only the user may enter the folder of the socket"


def test_a_loop_without_an_end_is_stopped_and_named(workshop, settings):
    workshop("start", 1)
    lab_of(1).exercise.write_text("def sightings(records):\n    while True:\n        pass\n")
    ran = workshop("check", 1, "--seconds", 2)
    assert ran.returncode == 1
    assert "OutOfTime: stopped after 2 s of computing in Python; is there a loop that does not end?" in ran.stdout
    assert re.search(r"line: my-workshop/01-one-record/exercise.py, line [23]: (while True:|pass)", ran.stdout)
    eventually(lambda: grader(settings) is None, "the process to end")


def test_the_trainer_of_those_who_have_joined_sees_each_start_and_check(workshop, settings):
    with served(settings, "workshop", "serve") as trainer:
        workshop("join", trainer.base_url, "Ana")
        workshop("start", 1)
        assert '<td class="now">started</td>' in trainer.get("/").text
        assert workshop("check", 1).returncode == 1
        assert '<td class="now">0 of 6</td>' in trainer.get("/").text
        shutil.copy(lab_of(1).folder / "solution.py", lab_of(1).exercise)
        workshop("check", 1)
        assert "<tr><td>Ana</td><td>done</td>" in trainer.get("/").text
    told = workshop("check", 1)
    assert told.returncode == 0
    assert "cannot tell the trainer's page" in told.stderr
    assert "Connection refused" in told.stderr


def test_a_change_of_the_project_starts_another_process(workshop, settings):
    workshop("start", 1)
    first = grader(settings)
    os.utime(settings.home / "workshop" / "grader", (0, 0))  # as if everything had changed since
    workshop("start", 1)
    assert grader(settings) != first
    assert has_ended(first, 0)


def test_an_exercise_that_ends_python_is_told_apart(workshop):
    workshop("start", 1)
    lab_of(1).exercise.write_text("import os\nos._exit(3)\n")
    assert "the check ended without an answer: does the exercise end Python" in one_line_error(workshop("check", 1))
