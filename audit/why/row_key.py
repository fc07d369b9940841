"""Finds rows by what a person types of their keys: JSON, columns as name=value, or values alone."""

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from infrastructure.errors import StreamgaugeError, check_names

NEAREST = 3


@dataclass(frozen=True)
class Wanted:
    """What is known of a key. by_name: values of its columns. anywhere: values of columns without a name."""

    by_name: Mapping[str, Any]
    anywhere: Sequence[str] = ()

    @classmethod
    def of(cls, texts: Sequence[str], columns: Sequence[str]) -> "Wanted":
        """What the words of a command line say of a key with these columns. Raises StreamgaugeError for another column, and for broken JSON."""
        by_name: dict[str, Any] = {}
        anywhere: list[str] = []
        for text in texts:
            name, equals, value = text.partition("=")
            if text.startswith("{"):
                by_name |= _object(text)
            elif equals:
                by_name[name.strip()] = value
            else:
                anywhere.append(text)
        check_names("key column", by_name, columns)
        return cls(by_name, anywhere)

    def fits(self, key: Mapping[str, Any]) -> bool:
        """Whether a key is one of those."""
        return all(_fits(value, key.get(name)) for name, value in self.by_name.items()) and all(
            any(_fits(value, actual) for actual in key.values()) for value in self.anywhere
        )

    def nothing_fits(self, keys: Iterable[Mapping[str, Any]]) -> str:
        """One line on keys of which none fits: what no key has, and the nearest values that there are."""
        known: dict[str, set[str]] = {}
        for key in keys:
            for name, actual in key.items():
                known.setdefault(name, set()).add(_text(actual))
        if not known:
            return "the table has no rows"
        everything = set().union(*known.values())
        asked = [(name, value, known.get(name, set())) for name, value in self.by_name.items()]
        asked += [("", value, everything) for value in self.anywhere]
        for name, value, values in asked:
            text = _text(value)
            if not any(_fits(value, actual) for actual in values):
                near = difflib.get_close_matches(text, values, NEAREST, 0)
                return f"no row has {f'{name}={text}' if name else text}; the nearest: {', '.join(near)}"
        return "no row has all of these values"


def _object(text: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(text)
    except ValueError as error:
        msg = f"the key {text} is not JSON ({error}); expected columns with their values, such as zip_code=94016"
        raise StreamgaugeError(msg) from error
    return found


def _fits(wanted: Any, actual: Any) -> bool:  # noqa: ANN401 - values of keys
    """Whether a value is the one wanted. Of a time, or the start of a window, the beginning is enough: 2026-01-01T10."""
    if isinstance(wanted, Mapping) and isinstance(actual, Mapping):
        return all(_fits(value, actual.get(name)) for name, value in wanted.items())
    text, actual_text = _text(wanted), _text(actual)
    return text == actual_text or (_is_time(actual_text) and actual_text.startswith(_as_utc(text)))


def _text(value: Any) -> str:  # noqa: ANN401 - a value of a key
    if isinstance(value, Mapping):
        return _text(value.get("start"))
    return value if isinstance(value, str) else json.dumps(value)


def _is_time(text: str) -> bool:
    try:
        return text.endswith("Z") and datetime.fromisoformat(text) is not None
    except ValueError:
        return False


def _as_utc(text: str) -> str:
    """A time as keys have it; a part of one, or a time without an offset, as it is, with a T before the hour."""
    try:
        found = datetime.fromisoformat(text)
        return text.replace(" ", "T") if found.tzinfo is None else f"{found.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (ValueError, OverflowError):
        return text.replace(" ", "T")
