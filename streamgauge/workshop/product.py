"""A learner's function in the product: it runs in the product's query, and the audit says whether the table is right."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from contract.topics import ALERTS, Alert
from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.recent_records import last_records, of_message
from infrastructure.rows import decoder
from infrastructure.settings import Settings
from streamgauge.workshop import grader, own_domain
from streamgauge.workshop.grading import Failure, Verdict, not_asked, not_right, not_run
from streamgauge.workshop.labs import Lab, loaded

if TYPE_CHECKING:  # importing Spark takes a second or more
    from pyspark.sql import DataFrame

QUERY, FUNCTION = "nest-camera-stats", "camera_stats"
STREAM_LAB, KILL_LAB = "03-your-first-stream", "05-twice-is-once"
"""The labs whose last check asks the audit, beside own_domain.LAB: of the learner's function, and of a query that was killed."""
_KILLED = "the previous run did not stop cleanly"
_NEWEST_ALERTS = 100


def run(lab: Lab, settings: Settings, *, once: bool) -> None:
    """Runs the product's query, with the function of the learner's file in place of its own, as `streamgauge run` does; of lab 12, the whole domain.

    Raises StreamgaugeError if the file cannot be run, or has no such function.
    """
    if lab.folder.name == own_domain.LAB:
        with _errors_of(lab):
            loaded(lab.exercise).queries(settings)
        own_domain.run(lab, settings, once=once)
    from pipeline.commands import run as run_queries
    from pipeline.domains import nest

    if f"def {FUNCTION}(" not in (lab.folder / "exercise.py").read_text():
        msg = f"lab {lab.number} has no code that the product runs; labs 2, 3 and 12 have"
        raise StreamgaugeError(msg)
    function = _function(lab)
    setattr(nest, FUNCTION, lambda seen, locations, window: function(seen, locations))  # noqa: ARG005 - a learner's windows are an hour long
    ran = _ran(lab, settings)
    ran.parent.mkdir(parents=True, exist_ok=True)
    ran.write_text(_digest(lab))
    try:
        run_queries([QUERY], once=once)
    except StreamgaugeError:  # it was refused, so it has not run
        ran.unlink()
        raise


def asks_the_audit(lab: Lab) -> bool:
    """Whether the last check of a lab is what the audit finds."""
    return lab.folder.name in {STREAM_LAB, KILL_LAB, own_domain.LAB}


def with_audit(lab: Lab, verdict: Verdict, settings: Settings) -> Verdict:
    """The verdict with one more check: the table in the learner's Kafka is what a recount says, and the lab's own code, or a kill, was behind it."""
    if verdict.failure is not None:
        return Verdict(verdict.passed, verdict.total + 1, verdict.failure)
    try:
        failure = own_domain.failure(lab, settings) if lab.folder.name == own_domain.LAB else _not_yet(lab, settings) or _audited(settings)
    except StreamgaugeError as error:
        failure = not_asked(error, settings)
    return Verdict(verdict.passed + (failure is None), verdict.total + 1, failure)


def _not_yet(lab: Lab, settings: Settings) -> Failure | None:
    """What the learner has not done in the product so far."""
    if lab.folder.name == STREAM_LAB:
        ran = _ran(lab, settings)
        if ran.exists() and ran.read_text() == _digest(lab):
            return None
        hint = "A query that has counted with another function has to recount from the start."
        return not_run("Your function runs in the product", lab.number, hint, has_run=ran.exists())
    alerts = last_records(settings.kafka, ALERTS.name, _NEWEST_ALERTS, of_message(decoder(Alert)))
    if any(_KILLED in alert["what"] for alert in alerts):
        return None
    text = f"came:      no query that was killed, and started again\nexpected:  a start that says `{_KILLED}`"
    return Failure(
        "A query that was killed goes on", text, hint="Ctrl-C asks a query to stop, and it stops cleanly. Only signal 9 kills it."
    )


def _audited(settings: Settings) -> Failure | None:
    from audit.commands import verdicts_of
    from audit.verdicts.show import as_json

    return not_right(orjson.loads(as_json(verdicts_of([QUERY], settings))), QUERY, "streamgauge")


def _function(lab: Lab) -> "Callable[[DataFrame, DataFrame], DataFrame]":
    with _errors_of(lab):
        function: Callable[[DataFrame, DataFrame], DataFrame] | None = getattr(loaded(lab.exercise), FUNCTION, None)
    if function is None:
        msg = f"{lab.exercise} has no `{FUNCTION}`, which the original has"
        raise StreamgaugeError(msg)
    return function


@contextmanager
def _errors_of(lab: Lab) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        msg = f"{lab.exercise} ends with {type(error).__name__}: {error}; `streamgauge workshop check {lab.number}` names the line"
        raise StreamgaugeError(msg) from error


def _ran(lab: Lab, settings: Settings) -> Path:
    """A file that tells which version of the exercise the product has run last, with this home."""
    return grader.home(settings) / f"{lab.folder.name}.ran"


def _digest(lab: Lab) -> str:
    return sha256(lab.exercise.read_bytes()).hexdigest()
