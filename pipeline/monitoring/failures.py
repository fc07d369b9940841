"""Diagnoses a query failure from the text of Spark's exception: the cause in one line, and the remedy."""

import re
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from contract.checkpoints.contents import WAYS_OUT
from contract.checkpoints.names import CheckpointPlace
from infrastructure.kafka.errors import CLOCKS_DIFFER, java_forbidden, java_refused
from infrastructure.settings import Settings
from infrastructure.text import without_credentials

MAX_ERROR_CHARACTERS = 300
MAX_DETAIL_CHARACTERS = 4_000
# Spark gives a Python process 10 s to start. A query with a stateful processor in Python needs a new one for its first batch.
PYTHON_IS_SLOW = ("Python worker failed to connect back",)

# In real-time mode, the failure of a task may reach Spark as that of a task of the next stage, which reads from it. The next run, which
# first catches up, meets the cause again.
_WRITER_FAILED = ("Connection to streaming shuffle writer",)
_KAFKA_UNAVAILABLE = ("org.apache.kafka.common.errors.TimeoutException", "org.apache.kafka.common.errors.DisconnectException")
_DATA_LOSS = ("failOnDataLoss", "KAFKA_DATA_LOSS", "data may have been lost")
_OFFSET_GONE = ("OffsetOutOfRangeException",)
_TOPIC_GONE = ("UnknownTopicOrPartition", "UNKNOWN_TOPIC_OR_PARTITION", "does not host this topic-partition")
TOO_FEW_SLOTS = (
    "in Spark's real-time mode it needs {needed} task slots at the same time, and {free} are free: give Spark more (SPARK_MASTER=local[128], or "
    "`streamgauge spark-worker --cores`, also more than the machine has), or run in micro-batches with STREAMGAUGE_REAL_TIME=off "
    "(docs/real-time.md)"
)
_OTHER_STATE = (
    "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE",
    "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE",
    "STATE_STORE_INVALID_VALUE_SCHEMA_EVOLUTION",
    "STREAMING_STATEFUL_OPERATOR_NOT_MATCH",
)
_DAMAGED = (
    "Checksum error",
    "MALFORMED_LOG_FILE",
    "Malformed log file",
    "Incomplete log file",
    "BATCH_METADATA_NOT_FOUND",
    "CANNOT_LOAD_STATE_STORE",
)
_NOT_FOR_THE_TABLE = re.compile(r"\b(?:TypeChanged|TooManyFields|AmbiguousNames|DatabaseRefuses): (.+)")
_TOO_FEW_SLOTS = re.compile(r"CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT.*?needs (\d+) .*?only (\d+) ")
_DATABASE_UNAVAILABLE = re.compile(r"\bDatabaseUnavailable: (.+)")
_TRACEBACK = "Traceback (most recent call last):"
_NAME = r"(?:[\w.]|-(?!>))"  # a character of a name: in a->b, the - is none
_SECRET = re.compile(
    rf"""(?ix)
    (
        (?<![\w.-]) (?={_NAME}*?(?:password|passwd|secret|token|credential|api[._-]?key)) {_NAME}*+
        ["']? \s* (?: => | -> | [=:] ) \s* ["']?
    )
    [^\s,;"'}}\])]+
    """
)
"""A name that contains one of these words, and its value. It reads each name once."""
_CLOCKS_DIFFER = ("org.apache.kafka.common.errors.InvalidTimestampException",)
_DISK_FULL = ("No space left on device", "Disk quota exceeded")


class Failure(NamedTuple):
    """Why a query failed: one line, and a text of bounded size without stack frames."""

    error: str
    detail: str


class Remedy(Enum):
    """The remedy for a failed query."""

    RESTART = "a restart after a while, a limited number of times"
    RESTART_AT_ONCE = "a restart at once, without limit: the query did not cause the failure"
    PERSON = "no restart before a person has acted"


@dataclass(frozen=True)
class Diagnosis:
    """The cause of a failure, in one line, and its remedy."""

    cause: str
    remedy: Remedy = Remedy.RESTART


def diagnosis(text: str, checkpoint: CheckpointPlace, settings: Settings) -> Diagnosis:
    """Diagnoses the failure with Spark's exception `text`."""
    reset, error = f"`streamgauge reset {checkpoint.name.query}`", failure_of(text).error
    cut = "the records that it reads next are gone from Kafka: removed by retention, or lost by a broker"
    other_state = (
        f"the query has changed, and the state in {checkpoint.folder} does not fit it: raise its version in the code, "
        f"which recounts from the start and keeps the old checkpoint, or delete that with {reset}"
    )
    damage = next((line.lstrip(": ") for line in text.splitlines() if any(sign in line for sign in _DAMAGED)), "")
    damaged = f"its checkpoint is damaged: {failure_of(damage).error}; {WAYS_OUT} ({reset})"
    if why := java_forbidden(settings.kafka, text):
        return Diagnosis(why, Remedy.PERSON)
    if why := java_refused(settings.kafka, text):
        return Diagnosis(why)  # the next start checks Kafka first and reports the problem more precisely if it persists
    if reasons := _NOT_FOR_THE_TABLE.findall(text):
        return Diagnosis(reasons[-1], Remedy.PERSON)  # earlier matches are the exceptions that the last one was raised from
    if reasons := _DATABASE_UNAVAILABLE.findall(text):
        return Diagnosis(reasons[-1], Remedy.RESTART_AT_ONCE)  # the next start waits for it
    if slots := _TOO_FEW_SLOTS.search(text):
        return Diagnosis(TOO_FEW_SLOTS.format(needed=slots[1], free=slots[2]))
    by_sign = {
        _TOPIC_GONE: Diagnosis("a topic that it reads or writes is gone from Kafka; `streamgauge up` creates what is missing"),
        # The next start checks whether Kafka and the topics exist. A sink whose topic is missing fails in the same way.
        _KAFKA_UNAVAILABLE: Diagnosis("a request to Kafka was not answered in time", Remedy.RESTART_AT_ONCE),
        PYTHON_IS_SLOW: Diagnosis("a Python process took longer to start than the 10 s that Spark waits", Remedy.RESTART_AT_ONCE),
        _DATA_LOSS: Diagnosis(records_gone(checkpoint.name.query, cut), Remedy.PERSON),
        _OFFSET_GONE: Diagnosis("Kafka does not have the offset that it reads next"),  # the next start says why
        _OTHER_STATE: Diagnosis(other_state, Remedy.PERSON),
        _DAMAGED: Diagnosis(damaged),
        _CLOCKS_DIFFER: Diagnosis(f"Kafka refused its records: {CLOCKS_DIFFER}"),
        _DISK_FULL: Diagnosis(f"no space is left under {settings.home.absolute()}; free some space; nothing is lost meanwhile"),
        _WRITER_FAILED: Diagnosis("a task failed, and Spark does not say why", Remedy.RESTART_AT_ONCE),
    }
    return next((case for signs, case in by_sign.items() if any(sign in text for sign in signs)), Diagnosis(error))


def hides_its_cause(text: str) -> bool:
    """Whether Spark's exception `text` is not of the task that failed, but of one that reads from it."""
    return any(sign in text for sign in _WRITER_FAILED)


def records_gone(query: str, evidence: str) -> str:
    """The message for records that are gone before the query read them. evidence: how that is known."""
    return (
        f"{evidence}. Two ways out: continue with what is left and accept the gap (STREAMGAUGE_FAIL_ON_DATA_LOSS=false), "
        f"or recount from the earliest remaining record (`streamgauge reset {query}`)"
    )


def failure_of(exception: str) -> Failure:
    """Parses `exception`, the text of a Java stack trace, in which there may be one of Python. Removes what looks like a secret."""
    lines = [line.rstrip() for line in _SECRET.sub(r"\1***", without_credentials(exception)).splitlines()]
    without_frames = [line for line in lines if line.strip() and not re.match(r"\s*(at \S|\.\.\. \d+ more)", line)]
    error = without_frames[0].strip() if without_frames else "no reason given"
    if error.endswith(_TRACEBACK):
        error = error.removesuffix(_TRACEBACK) + next((line for line in without_frames[1:] if not line.startswith(" ")), "")
    return Failure(_shortened(error, MAX_ERROR_CHARACTERS), _shortened("\n".join(without_frames), MAX_DETAIL_CHARACTERS))


def _shortened(text: str, largest: int) -> str:
    return text if len(text) <= largest else text[: largest - 4] + " ..."
