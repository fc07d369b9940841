"""The fields of objects in JSON, by their kinds: how SQL reads them, and why one cannot be used.

A kind has a macro `as_<kind>` in macros.sql, or is a decimal, as "decimal(12,2)". A value that is not accepted is null. So each rule is there once,
for what counts and for what is a dead letter.
"""

import json
import re
from collections.abc import Iterable, Mapping

OTHER_TYPE = "a field is of another type"
_NO_MOMENT = "{name} is not a date and time of the years 1970 to 9999, such as 2026-01-31T10:00:00Z"
_NO_NUMBER = "{name} is not a number that {kind} holds"
_REASONS = {**dict.fromkeys(("flag", "object", "objects", "texts"), OTHER_TYPE), "moment": _NO_MOMENT}
"""Of kinds that are no numbers. Text may be anything."""

Fields = Mapping[str, str]
"""The kinds of an object's fields, by name."""


def read(source: str, fields: Fields) -> str:
    """SQL: a struct of the fields of an object, as JSON; each is null if it is not there."""
    return f"json_transform({source}, '{json.dumps(dict.fromkeys(fields, 'JSON'))}')"


def value(source: str, kind: str) -> str:
    """SQL: the value of JSON, null if it is not accepted."""
    if found := re.fullmatch(r"decimal\(\d+,(\d+)\)", kind):
        return f"TRY_CAST(with_places({source}, {found[1]}) AS {kind})"
    return f"as_{kind}({source})"


def values(struct: str, fields: Iterable[tuple[str, str]]) -> str:
    """SQL: the values of the fields of a struct of `read`, as columns."""
    return ", ".join(f"{value(f'{struct}.{name}', kind)} AS {name}" for name, kind in fields)


def flaws(struct: str, fields: Fields) -> list[str]:
    """SQL, a text each: why the value of a field of a struct of `read` cannot be used, null if it can."""
    return [
        when(
            f"{struct}.{name} IS NOT NULL AND {value(f'{struct}.{name}', kind)} IS NULL",
            _REASONS.get(kind, _NO_NUMBER).format(name=name, kind=kind),
        )
        for name, kind in fields.items()
        if kind != "text"
    ]


def too_long(column: str, name: str) -> str:
    """SQL: why an identifier cannot be used, null if it can. name: that of its field."""
    return when(f"NOT is_identifier({column})", f"{name} is longer than 255 characters")


def when(condition: str, reason: str) -> str:
    """SQL: the reason if the condition holds, or null."""
    return f"CASE WHEN {condition} THEN '{reason}' END"
