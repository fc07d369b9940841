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
    """The base of a declaration: annotated names, and a value for those that rows of earlier versions lack. Other fields are ignored."""

    @classmethod
    def check(cls, row: Row) -> None:
        """Raises ValueError for values that each are of their type and do not fit together."""

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(get_type_hints(cls))

    @classmethod
    def core_schema(cls) -> Row:
        """The declaration as pydantic's core has it."""

        def fitting(row: Row) -> Row:
            cls.check(row)
            return row

        def field(name: str, kind: object) -> Row:
            schema = _core_schema(kind)
            if hasattr(cls, name):
                schema = {"type": "default", "schema": schema, "default": getattr(cls, name)}
            return {"type": "typed-dict-field", "schema": schema, "required": not hasattr(cls, name)}

        fields = {name: field(name, kind) for name, kind in get_type_hints(cls, include_extras=True).items()}
        about = {"title": cls.__name__, "description": " ".join((cls.__doc__ or "").split()).replace("None", "null")}
        return _after(fitting, {"type": "typed-dict", "fields": fields, "metadata": {"pydantic_js_updates": about}})


class _Of:
    """In an annotation, the type as pydantic's core has it."""

    def __init__(self, **schema: object) -> None:
        self.schema = schema


def moment(text: object) -> datetime:
    """A time in a row, UTC. Raises ValueError if it is no text of one, has no time zone, or is not within the years of times in rows."""
    found = datetime.fromisoformat(text) if isinstance(text, str) else None
    if found is None or found.tzinfo is None or not FIRST_YEAR <= found.year <= LAST_YEAR:
        msg = f"expected a time with a time zone in the years {FIRST_YEAR} to {LAST_YEAR}"
        raise ValueError(msg)
    return found.astimezone(UTC)


def _partition(name: str) -> str:
    if not _PARTITION.fullmatch(name):
        msg = 'expected a partition, such as "nest-logs-0"'
        raise ValueError(msg)
    return name


def _after(read: Callable[[Any], object], schema: Row) -> Row:
    return {"type": "function-after", "function": {"type": "no-info", "function": read}, "schema": schema}


def _core_schema(kind: object) -> Row:
    """The type of a field as pydantic's core has it. Raises TypeError for one that is not in _KINDS."""
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
    Annotated: lambda _, of: of.schema,
    Literal: lambda *values: {"type": "literal", "expected": list(values)},
    **dict.fromkeys((Union, UnionType), lambda kind, _: {"type": "nullable", "schema": _core_schema(kind)}),
    list: lambda kind: {"type": "list", "items_schema": _core_schema(kind)},
    dict: lambda key, kind: {"type": "dict", "keys_schema": _core_schema(key), "values_schema": _core_schema(kind)},
}
_TIME = {"pydantic_js_updates": {"type": "string", "format": "date-time"}}
Time = Annotated[datetime, _Of(**_after(moment, {"type": "any"}), metadata=_TIME)]
Count = Annotated[int, _Of(type="int", ge=0, le=MAX_COUNT)]
Integer = Annotated[int, _Of(type="int", ge=-(2**63), lt=2**63)]
Number = Annotated[float, _Of(type="float", ge=-MAX_NUMBER, le=MAX_NUMBER, allow_inf_nan=False)]
Offsets = dict[Annotated[str, _Of(**_after(_partition, {"type": "str"}))], Annotated[int, _Of(type="int", ge=0, lt=2**63)]]
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
    """Decodes a value to its `fields`, times as datetime in UTC. of: decodes it as JSON has it. The decoder raises ValueError for others."""
    return lambda value: checked(fields, of(value))


def json_decoder(fields: type[Fields], of: Decode = decode_json) -> Decode:
    """As `decoder`, but the values stay as JSON has them: times are text."""
    names = fields.names()

    def decode(value: bytes) -> Row:
        row = of(value)
        checked(fields, row)
        return {name: row.get(name) for name in names}

    return decode


def checked(fields: type[Fields], row: Row) -> Row:
    """The `fields` of a row as JSON has it, times as datetime in UTC. Raises ValueError, which names the field, if it is no such row."""
    from pydantic_core import ValidationError

    try:
        found: Row = _validator(fields).validate_python(row, strict=True)  # type: ignore[arg-type] # a class can be hashed
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        field, wrong = ".".join(map(str, first["loc"])), "" if first["type"] == "missing" else f", found {first['input']!r:.40}"
        msg = f"{field or 'row'}: {first['msg'].removeprefix('Value error, ')}{wrong}"
        raise ValueError(msg) from None
    return found


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
    for name, value in fields_of_key.items():
        found = row.get(name, row if isinstance(value, dict) else value)
        if isinstance(value, dict) and isinstance(found, dict):
            _check_equal(value, found)
        elif value != found and (_moment_or_none(value) or value) != (_moment_or_none(found) or found):
            msg = f"{name}: expected {value!r:.40} as in the key, found {found!r:.40}"
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
