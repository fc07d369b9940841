"""Which bytes producers and pipeline accept as JSON, and which text as a time. pipeline.formats.json_text and json_values have the same rules in Spark."""

import json
import re
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import orjson

MAX_DIGITS = 1000
MAX_ID_CHARACTERS = 255
"""Identifiers are part of keys, whose size is limited: to 2.7 KB in an index of PostgreSQL, and to some megabytes in Kafka."""
TIME = r"(?:19[7-9]|[2-9]\d\d)\d-\d\d-\d\d[T ](?:[01]\d|2[0-3]):\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-](?:0\d|1[0-7]):[0-5]\d)?"
"""Date and time of ISO 8601, of the years 1970 to 9999. An offset is below 18 hours, as in Java."""
YEAR_10000 = 253_402_300_800
"""The start of that year, in seconds since 1970."""

DOTTED_I = ("\u0130", "i")
LIKE_OTHERS = (
    "\u00b5\u0131\u017f\u0345\u03c2\u03d0\u03d1\u03d5\u03d6\u03f0\u03f1\u03f5\u1c80\u1c81\u1c82\u1c83\u1c84\u1c85\u1c86\u1c87\u1c88\u1e9b\u1fbe",
    "\u03bc\u0069\u0073\u03b9\u03c3\u03b2\u03b8\u03c6\u03c0\u03ba\u03c1\u03b5\u0432\u0434\u043e\u0441\u0442\u0442\u044a\u0463\ua64b\u1e61\u03b9",
)
"""Lowercase letters that share their uppercase letter with another one, such as dotless i, long s and the micro sign, and those others.
DOTTED_I is the one uppercase letter whose full lowercase form has two characters. See `without_case`."""

_LIKE_OTHERS = str.maketrans(*LIKE_OTHERS)
_TIME = re.compile(TIME, re.ASCII)
# An escaped backslash, after which a u is a letter, and both halves of a character beyond the first 65,536.
_ESCAPED_PAIR = re.compile(rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_NO_CHARACTER = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")


def loads(text: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """The value of a JSON text. Raises ValueError if it is not JSON, or has a NUL or half of a surrogate pair.

    Numbers beyond the range of a double are valid, and become infinite.
    """
    if _NO_CHARACTER.search(text) and _NO_CHARACTER.search(_ESCAPED_PAIR.sub(b"", text)):
        msg = r"\u0000, or half of a surrogate pair"
        raise ValueError(msg)
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:  # or only a number that is too large for it
        if "depth limit" in str(error):  # how deep Python's own parser goes depends on the program
            msg = "nested too deep"
            raise ValueError(msg) from error
    try:
        return json.loads(text.decode(), parse_int=_number, parse_float=_number, parse_constant=_refused)
    except RecursionError as error:
        msg = "nested too deep"
        raise ValueError(msg) from error


def repeats_a_name(text: bytes) -> bool:
    """Whether an object in the text, at any level, has two fields of the same name. The text may be invalid JSON, too."""
    repeated = False

    def note(pairs: list[tuple[str, Any]]) -> None:
        nonlocal repeated
        repeated = repeated or len(dict(pairs)) < len(pairs)

    with suppress(ValueError, RecursionError):
        json.loads(text, parse_int=float, object_pairs_hook=note)
    return repeated


def without_case(name: str) -> str:
    """A form of the name that is equal for names that differ only in case. Java, and so Spark, compares them letter by letter."""
    return name.replace(*DOTTED_I).lower().translate(_LIKE_OTHERS)


def is_json(text: bytes) -> bool:
    """Whether `loads` accepts the text."""
    try:
        loads(text)
    except ValueError:
        return False
    return True


def time_of(text: object) -> datetime | None:
    """The time, in UTC. Text without an offset is in UTC already. None if it is not a `TIME`."""
    if not isinstance(text, str) or not _TIME.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment if moment.year >= 1970 else None  # noqa: PLR2004 - as in TIME


def _number(text: str) -> float:
    if len(text) > MAX_DIGITS:
        msg = f"a number of more than {MAX_DIGITS} digits"
        raise ValueError(msg)
    return float(text)


def _refused(constant: str) -> float:
    msg = f"{constant} is not JSON"
    raise ValueError(msg)
