"""The labs: what the README shows is what the commands print, and each wrong answer fails with the message that the learner must see."""

import io
import re
import shutil
import tomllib

import pytest
from running import streamgauge

from infrastructure.settings import Settings
from streamgauge.workshop import grader, product
from streamgauge.workshop.commands import result_lines
from streamgauge.workshop.grading import grade
from streamgauge.workshop.labs import LABS, ROOT, Lab, all_labs, lab_of


def wrong_answers(lab):
    """The lab's typical wrong answers by name: mistake, what stands in the solution and in the answer, and what the learner sees."""
    return tomllib.loads((lab.folder / "wrong.toml").read_text())


def marks(lab):
    return [pytest.mark.delta] if lab.needs_delta else []


WRONG = [pytest.param(lab, name, marks=marks(lab)) for lab in all_labs() for name in wrong_answers(lab)]


@pytest.fixture(autouse=True)
def one_session(spark):
    """The checks use the worker's session."""


def name_of(value):
    return value.folder.name if isinstance(value, Lab) else value


@pytest.mark.parametrize(("lab", "name"), WRONG, ids=name_of)
def test_a_wrong_answer_fails_with_the_message_that_the_learner_must_see(lab, name, tmp_path):
    wrong, solution = wrong_answers(lab)[name], (lab.folder / "solution.py").read_text()
    found = solution.count(wrong["solution"])
    assert found == 1, f"solution.py has `solution` of [{name}] {found} times, expected once:\n{wrong['solution']}"
    exercise = tmp_path / lab.exercise
    exercise.parent.mkdir(parents=True)
    exercise.write_text(solution.replace(wrong["solution"], wrong["answer"]))
    verdict = grade(lab, exercise)
    if product.asks_the_audit(lab):
        verdict = product.with_audit(lab, verdict, Settings())
    assert verdict.failure is not None, f"all checks pass, although [{name}] is wrong: {wrong['mistake']}"
    message = "\n".join(result_lines(lab, verdict)).replace(f"{tmp_path}/", "")
    missing = "\n".join(line for line in wrong["sees"].splitlines() if line not in message)
    assert not missing, f"`sees` of [{name}] has lines that the learner does not see:\n{missing}\n\nThe learner sees:\n{message}"


@pytest.mark.parametrize(
    ("number", "written", "as_written_by_another"),
    [
        (4, "11=3 13=1", "13=1, 11=3"),
        (4, "2      10:05         10:20 ", "2      10:05:00      10:20:00 "),
        (13, "t-2 unpaid, t-3 paid", "t-3 paid,t-2 unpaid"),
        (13, "t-1 10:20  09:55 ", "t-1 10:20  9:55 "),
    ],
)
def test_a_prediction_names_what_a_batch_writes_in_any_order_and_times_as_people_write_them(
    number, written, as_written_by_another, tmp_path
):
    lab, exercise = lab_of(number), tmp_path / "exercise.py"
    solution = (lab.folder / "solution.py").read_text()
    assert written in solution
    exercise.write_text(solution.replace(written, as_written_by_another))
    assert grade(lab, exercise).failure is None


@pytest.mark.parametrize("lab", [pytest.param(lab, marks=marks(lab)) for lab in all_labs()], ids=name_of)
def test_the_commands_of_a_readme_print_what_it_says(lab, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(grader, "ready", lambda _: io.BytesIO())
    monkeypatch.setattr(grader, "graded", lambda lab, *_: grade(lab, lab.exercise.absolute()))
    before, done = (lab.folder / "README.md").read_text().split("## Done")
    for part in (before,) if product.asks_the_audit(lab) else (before, done):  # tests/kafka/test_workshop_product.py has a Kafka
        if part is done:
            shutil.copy(lab.folder / "solution.py", lab.exercise)
        blocks = re.findall(r"```console\n\$ streamgauge workshop (.*?)\n(.*?)```", part, re.DOTALL)
        assert blocks
        for arguments, expected in blocks:
            if not arguments.startswith("run "):
                ran = streamgauge("workshop", *arguments.split(), settings=Settings(home=tmp_path))
                assert ran.stdout == expected, ran.stderr


def test_a_check_ignores_the_options_of_other_pytest_runs(monkeypatch):
    monkeypatch.setenv("PYTEST_ADDOPTS", "-vv --collect-only")
    lab = all_labs()[0]
    assert "not done yet" in grade(lab, lab.folder / "exercise.py").failure.text


def test_each_lab_is_on_the_list_and_has_three_wrong_answers():
    listed = (LABS / "README.md").read_text()
    for lab in all_labs():
        assert f"| [{lab.number}. {lab.title}]({lab.folder.name}/README.md) |" in listed
        assert len(wrong_answers(lab)) >= 3, f"{lab.folder / 'wrong.toml'} needs three typical wrong answers"


@pytest.mark.parametrize("lab", all_labs(), ids=name_of)
def test_the_text_shows_the_tables_of_the_checks_and_quotes_the_code(lab):
    readme, discussion = ((lab.folder / name).read_text() for name in ("README.md", "discussion.md"))
    tables = re.findall(r'^[A-Z_]+ = """\n(.*?)"""', (lab.folder / "test_lab.py").read_text(), re.DOTALL | re.MULTILINE)
    assert [table for table in tables if table not in readme] == [], "the README should show what the checks use"
    code = "\n".join(
        path.read_text()
        for room in ("pipeline", "contract", "infrastructure", "streamgauge", "producers", "workshop")
        for path in (ROOT / room).rglob("*.py")
    )
    assert [quoted for quoted in re.findall(r"```python\n(.*?)```", discussion, re.DOTALL) if quoted not in code] == []
