"""JSON texts that DuckDB reads as docs/values.md promises.

DuckDB takes NaN, trailing commas and any depth, has the first of a name that is there twice, and knows decimals as doubles only. A text is
plain if a strict parser writes it again as it was: then its names are unique, its numbers exact, and DuckDB reads nothing else in it.
Other texts, a small part, are read in Python, and either written in a plain way or refused with a reason.
"""

import json
import re
import sys
from decimal import Decimal
from functools import partial
from typing import Any, NoReturn

import orjson

MOST_LEVELS = 999
MOST_DIGITS = 1_000
MOST_NAME_CHARACTERS = 50_000
MOST_DIGITS_OF_A_FRACTION = 38
NAME_TWICE = "a name is there twice in an object"
AS_WRITTEN = "\0"
"""Before the digits of a number that is a string instead. No other string has it."""

# For MOST_LEVELS. It stays: the limit is that of all threads, of which several read and write such texts at once.
sys.setrecursionlimit(max(sys.getrecursionlimit(), 7 * MOST_LEVELS))

_EXACT_DIGITS = 15
_MOST_LEVELS_WRITTEN = 254
"""`orjson` writes nothing that is nested deeper."""
_BLANKS = b" \t\n\r"
_STRING = re.compile(r'("(?:[^"\\]|\\.)*+")(\s*:)?', re.DOTALL)
_NUMBER = re.compile(r"[-+.\deE]+", re.ASCII)
_BEYOND_DOUBLES = re.compile(r"[\s:,\[]-?(?:\d{16}[eE]|[\d.]{17,}+[eE]|[\d.]{1,16}[eE][+-]?0*+[1-9]\d\d|[\d.]{39})", re.ASCII)
"""In a text with such a number, none with an exponent counts."""
_TOO_MUCH = f"not JSON, or it has a number of more than {MOST_DIGITS:,} digits or a name of more than {MOST_NAME_CHARACTERS:,} characters"
_TOO_DEEP = "not JSON, or nested more than {} levels deep"


def json_text(value: bytes | None, most_levels: int = MOST_LEVELS) -> tuple[bytes | None, str | None]:
    """The value as a plain text in UTF-8, and None; or None, and why it is refused. A number that no double keeps is a string, with AS_WRITTEN."""
    if _is_plain(value, most_levels):
        return value, None
    try:
        text = (value or b"").decode()
    except UnicodeDecodeError:
        return None, "not UTF-8"
    if not text.strip(_BLANKS.decode()):
        return None, "empty"
    repeats: list[bool] = []

    def noted(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        repeats.append(len(found) < len(pairs))
        return found

    parse_float = partial(_kept, may_have_exponent=_BEYOND_DOUBLES.search(text) is None)
    try:
        read = json.loads(text, object_pairs_hook=noted, parse_float=parse_float, parse_constant=_refuse_constant)
        written = json.dumps(read, ensure_ascii=False, separators=(",", ":"))
    except (ValueError, RecursionError):
        return None, _why_not_json(text, most_levels)
    reason = _refusal(text, most_levels) or (NAME_TWICE if any(repeats) else None)
    return (written.encode(), None) if reason is None else (None, reason)


def _is_plain(value: bytes | None, most_levels: int) -> bool:
    """Whether the value is JSON as `orjson` writes it, but for blanks between its parts."""
    if not value or len(value) > MOST_NAME_CHARACTERS:
        return False
    if most_levels < _MOST_LEVELS_WRITTEN and value.count(b"[") + value.count(b"{") > most_levels:
        return False
    try:
        written = orjson.dumps(orjson.loads(value))
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return False
    if b"\\" in value and b"\\u0000" in value:  # the first is found fast
        return False
    return written == value or written.translate(None, _BLANKS) == value.translate(None, _BLANKS)


def _kept(number: str, *, may_have_exponent: bool) -> float | str:
    """A number with a point or an exponent, if a double keeps all digits; else a string of its digits, with AS_WRITTEN."""
    before, _, after = number.lstrip("-").partition(".")
    if "e" in number.lower():
        is_kept = may_have_exponent
    else:
        is_short = max(len(after), len((before + after).lstrip("0"))) <= MOST_DIGITS_OF_A_FRACTION
        is_kept = is_short and len(before) <= _EXACT_DIGITS and Decimal(repr(float(number))) == Decimal(number)
    return float(number) if is_kept else AS_WRITTEN + number


def _refusal(text: str, most_levels: int) -> str | None:
    """Why a text that is JSON cannot be kept; None if it can."""
    strings = [(json.loads(string), bool(colon)) for string, colon in _STRING.findall(text)]
    rest = _STRING.sub(r'""\2', text)
    if any(sum(map(str.isdigit, number)) > MOST_DIGITS for number in _NUMBER.findall(rest)):
        return _TOO_MUCH
    if any(is_name and len(string) > MOST_NAME_CHARACTERS for string, is_name in strings):
        return _TOO_MUCH
    if _levels(rest) > most_levels:
        return _TOO_DEEP.format(most_levels)
    if any("\0" in string for string, _ in strings):
        return r"a NUL character (\u0000)"
    if any("\ud800" <= character <= "\udfff" for string, _ in strings for character in string):
        return r"half of a surrogate pair, such as \ud800, which is no character"
    return None


def _why_not_json(text: str, most_levels: int) -> str:
    if text.startswith("\ufeff"):
        return "not JSON: it begins with a byte order mark"
    if len(re.findall(r"[\[{]", text)) > most_levels:
        return _TOO_DEEP.format(most_levels)
    start = text.lstrip(_BLANKS.decode())
    try:
        value, end = json.JSONDecoder(object_pairs_hook=each_once, parse_constant=_refuse_constant).raw_decode(start)
        json.dumps(value, ensure_ascii=False).encode()  # a first value with half of a surrogate pair is none
    except (ValueError, RecursionError):
        is_too_much = re.search(rf'\d{{{MOST_DIGITS}}}|"[^"]{{{MOST_NAME_CHARACTERS}}}', text)
        return _TOO_MUCH if is_too_much else "not JSON"
    # Only a number does not say where it ends.
    is_cut_off = isinstance(value, int | float) and not isinstance(value, bool) and start[end].encode() not in _BLANKS
    return "not JSON" if is_cut_off else "more than one JSON value, or other text after the first"


def _levels(text: str) -> int:
    """How deep objects and arrays of a JSON text without strings are nested."""
    level = most = 0
    for character in text:
        level += {"[": 1, "{": 1, "]": -1, "}": -1}.get(character, 0)
        most = max(most, level)
    return most


def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The fields of an object. Raises ValueError for a name that is there twice."""
    if len(found := dict(pairs)) < len(pairs):
        raise ValueError(NAME_TWICE)
    return found


def _refuse_constant(constant: str) -> NoReturn:
    msg = f"{constant} is not JSON"
    raise ValueError(msg)
