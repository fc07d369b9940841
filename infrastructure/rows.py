"""The rows of topics: their fields, declared once beside each topic, and the decoder that refuses every other record.

A declaration is a plain class, because every command imports the topics. pydantic's core checks the rows, and is imported when the first is
read; with pydantic itself, a command that reads rows would start 0.1 s later.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import orjson

if TYPE_CHECKING:
    from pydantic_core import SchemaValidator

Row = dict[str, Any]
Decode = Callable[[bytes], Row]
"""Decodes a record's value to a row. Raises an error with a reason when it cannot.

A StreamgaugeError means that no value can be decoded at present, for example because the schema registry is down. Any other error concerns
this value only.
"""

FIRST_YEAR, LAST_YEAR = 1000, 2999
"""The years of times in rows. Beyond them is no event, but a unit mistaken for another."""
MAX_COUNT = 10**15
"""Sums of thousands of such counts still fit into 64 bits."""
MAX_NUMBER = 1e300
MAX_WINDOW = timedelta(days=36_525)
_PARTITION = re.compile(r"[A-Za-z0-9._-]{1,249}-\d{1,9}")


class Fields:
    """The base class of declarations. Each annotated name is a field. Those with a default may be missing, as in rows of earlier versions."""

    @classmethod
    def check(cls, row: Row) -> None:
        """Raises ValueError if values contradict each other, although each has its type."""

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(get_type_hints(cls))

    @classmethod
    def core_schema(cls) -> Row:
        """The declaration as a schema for pydantic's core."""

        def check(row: Row) -> Row:
            cls.check(row)
            return row

        def field(name: str, kind: object) -> Row:
            schema = _core_schema(kind)
            if hasattr(cls, name):
                schema = {"type": "default", "schema": schema, "default": getattr(cls, name)}
            return {"type": "typed-dict-field", "schema": schema, "required": not hasattr(cls, name)}

        fields = {name: field(name, kind) for name, kind in get_type_hints(cls, include_extras=True).items()}
        metadata = {"title": cls.__name__, "description": " ".join((cls.__doc__ or "").split()).replace("None", "null")}
        return _after(check, {"type": "typed-dict", "fields": fields, "metadata": {"pydantic_js_updates": metadata}})


class _Schema:
    """Annotates a type with its schema for pydantic's core."""

    def __init__(self, **schema: object) -> None:
        self.schema = schema


def moment(text: object) -> datetime:
    """Parses a time in a row, to UTC. Raises ValueError if it is not ISO 8601 text, has no time zone, or is not in FIRST_YEAR to LAST_YEAR."""
    time = datetime.fromisoformat(text) if isinstance(text, str) else None
    if time is None or time.tzinfo is None or not FIRST_YEAR <= time.year <= LAST_YEAR:
        msg = f"expected a time with a time zone in the years {FIRST_YEAR} to {LAST_YEAR}"
        raise ValueError(msg)
    return time.astimezone(UTC)


def _partition(name: str) -> str:
    if not _PARTITION.fullmatch(name):
        msg = 'expected a partition, such as "nest-logs-0"'
        raise ValueError(msg)
    return name


def _after(read: Callable[[Any], object], schema: Row) -> Row:
    return {"type": "function-after", "function": {"type": "no-info", "function": read}, "schema": schema}


def _core_schema(kind: object) -> Row:
    """The schema of a field's type for pydantic's core. Raises TypeError for a type that is not in _KINDS."""
    if isinstance(kind, type) and issubclass(kind, Fields):
        return kind.core_schema()
    make = _KINDS.get(get_origin(kind) or kind)
    if make is None:
        msg = f"a field has type {kind}; expected a type of infrastructure.rows, such as Count or Time, or of {', '.join(map(str, _KINDS))}"
        raise TypeError(msg)
    return make(*get_args(kind))


_KINDS: dict[object, Callable[..., Row]] = {
    str: lambda: {"type": "str"},
    bool: lambda: {"type": "bool"},
    Annotated: lambda _, annotation: annotation.schema,
    Literal: lambda *values: {"type": "literal", "expected": list(values)},
    **dict.fromkeys((Union, UnionType), lambda kind, _: {"type": "nullable", "schema": _core_schema(kind)}),
    list: lambda kind: {"type": "list", "items_schema": _core_schema(kind)},
    dict: lambda key, kind: {"type": "dict", "keys_schema": _core_schema(key), "values_schema": _core_schema(kind)},
}
_TIME = {"pydantic_js_updates": {"type": "string", "format": "date-time"}}
Time = Annotated[datetime, _Schema(**_after(moment, {"type": "any"}), metadata=_TIME)]
Count = Annotated[int, _Schema(type="int", ge=0, le=MAX_COUNT)]
Integer = Annotated[int, _Schema(type="int", ge=-(2**63), lt=2**63)]
Number = Annotated[float, _Schema(type="float", ge=-MAX_NUMBER, le=MAX_NUMBER, allow_inf_nan=False)]
Offsets = dict[Annotated[str, _Schema(**_after(_partition, {"type": "str"}))], Annotated[int, _Schema(type="int", ge=0, lt=2**63)]]
"""Offsets or numbers of records by partition ("topic-0")."""


class Window(Fields):
    """From start to end, UTC."""

    start: Time
    end: Time

    @classmethod
    def check(cls, row: Row) -> None:
        """Refuses a window that does not end after its start, or is longer than MAX_WINDOW."""
        if not row["start"] < row["end"] <= row["start"] + MAX_WINDOW:
            msg = "expected an end after the start, within a hundred years"
            raise ValueError(msg)


def decode_json(value: bytes) -> Row:
    """Decodes a JSON object to a dict. Raises ValueError for anything else."""
    row = orjson.loads(value)
    if not isinstance(row, dict):
        msg = f"expected a JSON object, found {type(row).__name__}"
        raise ValueError(msg)  # noqa: TRY004 - the value is wrong, as any other text that is no JSON object
    return row


def decoder(fields: type[Fields], of: Decode = decode_json) -> Decode:
    """A decoder of values to rows with these fields, times as datetime in UTC. It raises ValueError for other values. of: decodes to JSON's types."""
    return lambda value: checked(fields, of(value))


def json_decoder(fields: type[Fields], of: Decode = decode_json) -> Decode:
    """As `decoder`, but the fields keep JSON's types: times are text."""
    names = fields.names()

    def decode(value: bytes) -> Row:
        row = of(value)
        checked(fields, row)
        return {name: row.get(name) for name in names}

    return decode


def checked(fields: type[Fields], row: Row) -> Row:
    """The `fields` of a row in JSON's types, with times as datetime in UTC. Raises ValueError with the name of a field that is wrong."""
    from pydantic_core import ValidationError

    try:
        checked_row: Row = _validator(fields).validate_python(row, strict=True)  # type: ignore[arg-type] # a class can be hashed
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        field, wrong = ".".join(map(str, first["loc"])), "" if first["type"] == "missing" else f", found {_shown(first['input'])}"
        msg = f"{field or 'row'}: {first['msg'].removeprefix('Value error, ')}{wrong}"
        raise ValueError(msg) from None
    return checked_row


def _shown(value: object) -> str:
    try:
        return f"{value!r:.40}"
    except RecursionError:  # in a record of another program
        return "what is nested too deep"


def check_key(key: bytes, row: Row) -> None:
    """Raises ValueError if a record's key is not that of its row.

    key: a JSON object with fields of the row, or the text of its field `query`. Names that the row lacks say nothing; the start and end of a
    window may be in the row itself.
    """
    try:
        fields_of_key = decode_json(key)
    except ValueError:
        fields_of_key = {"query": key.decode(errors="replace")}
    _check_equal(fields_of_key, row)


def _check_equal(fields_of_key: Row, row: Row) -> None:
    for name, expected in fields_of_key.items():
        actual = row.get(name, row if isinstance(expected, dict) else expected)
        if isinstance(expected, dict) and isinstance(actual, dict):
            _check_equal(expected, actual)
        elif expected != actual and (_moment_or_none(expected) or expected) != (_moment_or_none(actual) or actual):
            msg = f"{name}: expected {_shown(expected)} as in the key, found {_shown(actual)}"
            raise ValueError(msg)


def _moment_or_none(value: object) -> datetime | None:
    try:
        return value if isinstance(value, datetime) else moment(value)
    except ValueError:
        return None


@cache
def _validator(fields: type[Fields]) -> "SchemaValidator":
    from pydantic_core import SchemaValidator

    return SchemaValidator(fields.core_schema())
