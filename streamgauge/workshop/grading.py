"""Runs the tests of a lab on a file and says what a learner needs to know of the first one that fails."""

import linecache
import os
import re
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings
from streamgauge.workshop.labs import LABS, ROOT, Lab

_TEST_FILE = "test_lab.py"
_CONFIG = f"--config-file={ROOT / 'pyproject.toml'}"
_OPTIONS = [
    *("-x", "--import-mode=importlib", "--assert=plain", "--capture=sys", "--override-ini=addopts=", _CONFIG),
    # What pytest and its plugins would print, write or watch by themselves.
    *(f"-pno:{plugin}" for plugin in ("terminal", "cacheprovider", "faulthandler", "timeout", "xdist")),
]
_MAX_MESSAGE_LINES, _MAX_LINE_LENGTH = 30, 400


@dataclass(frozen=True)
class Failure:
    """The first test that fails.

    what: the behaviour, a sentence. text: what came and what was expected, or the error. where: the line of the learner's file, if the error
    has one. hint: what to look at. printed: by the learner's code.
    """

    what: str
    text: str
    where: str = ""
    hint: str = ""
    printed: str = ""


def not_run(what: str, number: int, hint: str, *, has_run: bool) -> Failure:
    """The product has not run the file of lab `number` as it is now. has_run: whether it has run another version of it."""
    came = "another version of it has run" if has_run else "it has not run"
    return Failure(what, f"came:      {came}\nexpected:  `streamgauge workshop run {number}` with the file as it is now", hint=hint)


def not_asked(error: StreamgaugeError, settings: Settings) -> Failure:
    """The audit could not count, because of `error`."""
    hint = f"The check looks for Kafka and the results of STREAMGAUGE_HOME, which is {settings.home}. The README says how to start Kafka there."
    return Failure("The audit finds every row right", f"the audit could not be asked: {error}", hint=hint)


def not_right(found: Sequence[Mapping[str, Any]], query: str, verify: str) -> Failure | None:
    """What the audit finds wrong. found: verdicts, as `verify --format json` prints them; that of `query` must have rows. verify: the command."""
    for one in found:
        rows = one["rows"]
        if one["verdict"] == "right" and (rows["compared"] or one["query"] != query):
            continue
        wrong = rows["missing"] + rows["extra"] + rows["different"]
        came = one["problem"] or "; ".join(
            [*one["faults"], f"{wrong} of {rows['compared']} rows are wrong" if rows["compared"] else "no rows"]
        )
        text = f"came:      {one['query']}: {came}\nexpected:  rows, and each as the audit counts it from the source"
        hint = f"`{verify} verify {one['query']}` shows the rows, and `{verify} why` the records behind one."
        return Failure("The audit finds every row right", text, hint=hint)
    return None


@dataclass(frozen=True)
class Verdict:
    """passed: how many tests passed before the first that failed. total: how many there are."""

    passed: int
    total: int
    failure: Failure | None = None


class OutOfTime(BaseException):
    """The exercise computes longer than it may. No `except Exception` of the exercise holds it."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"stopped after {seconds} s of computing in Python; is there a loop that does not end?")


def grade(lab: Lab, exercise: Path) -> Verdict:
    """Runs the lab's tests on `exercise`, in this process. Raises StreamgaugeError when the file cannot be read, or the tests themselves fail."""
    import pytest

    if (broken := _syntax_error(exercise)) is not None:
        return Verdict(0, 0, broken)
    os.environ.pop("PYTEST_ADDOPTS", None)  # options of somebody's own runs, which may name a plugin that is off here
    run = _Run(exercise)
    tests = str(lab.folder / _TEST_FILE)
    code = pytest.main([*_OPTIONS, "--exercise", str(exercise), tests], plugins=[run])
    for name in [name for name, module in sys.modules.items() if Path(getattr(module, "__file__", None) or "/").is_relative_to(LABS)]:
        del sys.modules[name]  # a later run must see later changes
    if run.failure is None and code != pytest.ExitCode.OK:
        msg = f"the tests of lab {lab.number} could not run ({pytest.ExitCode(code).name}): {run.broken or 'see python -m pytest'} {tests}"
        raise StreamgaugeError(msg)
    return Verdict(run.passed, run.total, run.failure)


class _Run:
    """A pytest plugin that keeps what happened."""

    def __init__(self, exercise: Path) -> None:
        self.exercise = exercise
        self.passed, self.total, self.broken = 0, 0, ""
        self.failure: Failure | None = None

    def pytest_collectreport(self, report: Any) -> None:  # noqa: ANN401 - pytest's types are not here when the command is
        if report.failed:
            self.broken = str(report.longrepr)

    def pytest_collection_finish(self, session: Any) -> None:  # noqa: ANN401
        self.total = len(session.items)

    def pytest_exception_interact(self, node: Any, call: Any, report: Any) -> None:  # noqa: ANN401
        if self.failure is None and hasattr(node, "obj") and report.when:
            text, where = _error_and_line(call.excinfo.value, self.exercise)
            what = node.originalname.removeprefix("test_").replace("_", " ")
            # Before a learner has tried, a hint would give the solution away.
            hint = "" if isinstance(call.excinfo.value, NotImplementedError) else " ".join((node.obj.__doc__ or "").split())
            self.failure = Failure(what[0].upper() + what[1:], text, where, hint, report.capstdout)

    def pytest_runtest_logreport(self, report: Any) -> None:  # noqa: ANN401
        self.passed += report.when == "call" and report.passed


def _syntax_error(exercise: Path) -> Failure | None:
    try:
        compile(exercise.read_bytes(), str(exercise), "exec")
    except OSError as error:
        msg = f"could not read {exercise}: {error.strerror}"
        raise StreamgaugeError(msg) from error
    except (SyntaxError, ValueError) as error:
        line = f"{exercise}, line {error.lineno}: {(error.text or '').strip()}" if isinstance(error, SyntaxError) else str(exercise)
        return Failure("The file is Python", f"{type(error).__name__}: {getattr(error, 'msg', error)}", where=line)
    return None


def _error_and_line(error: BaseException, exercise: Path) -> tuple[str, str]:
    """The error in a few lines, and the line of the learner's file that it comes from."""
    lines = _message(error).strip().splitlines()
    own = _lines_in(error, exercise)
    linecache.checkcache(str(exercise))
    where = f"{exercise}, line {own[-1]}: {linecache.getline(str(exercise), own[-1]).strip()}" if own else ""
    if isinstance(error, AssertionError) and not own:
        return "\n".join(lines[:_MAX_MESSAGE_LINES]), ""
    if isinstance(error, AttributeError) and getattr(error.obj, "__name__", "") == "exercise":
        return f"came:      a file without `{error.name}`\nexpected:  it has `{error.name}`, as the original", ""
    if isinstance(error, NotImplementedError):
        return f"not done yet: {' '.join(lines)}", where
    # Spark's first line says what is wrong; its plan and the JVM's stack follow. An expression or schema in it may have a thousand characters.
    told = re.sub(r'(?<=Cannot resolve ")(.{80}).+(?=" due to)', r"\1 ...", lines[0] if lines else "")
    return f"{type(error).__name__}: {told[:_MAX_LINE_LENGTH]}{' ...' if len(told) > _MAX_LINE_LENGTH else ''}", where


def _message(error: BaseException) -> str:
    """The error's text; of an error that py4j only passes on, the first cause in the JVM with an error condition of Spark's, else the last."""
    if (java := getattr(error, "java_exception", None)) is None:
        return str(error)
    while java.getCause() is not None and not str(java.getMessage()).startswith("["):
        java = java.getCause()
    return str(java.toString())


def _lines_in(error: BaseException, exercise: Path) -> list[int]:
    """The lines of the learner's file in the traceback, and, for an error of a frame that Spark ran later, in its message."""
    frames = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(exercise) and frame.lineno]
    return frames + [int(number) for number in re.findall(rf"{re.escape(str(exercise))}:(\d+)", str(error))]
