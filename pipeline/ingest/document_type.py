"""The columns that documents give a new table, found as `seen_type` finds them and without Spark. Pure: JSON text in, columns out."""

import json
import re
from collections.abc import Sequence
from decimal import Decimal
from functools import reduce
from typing import Any

from pyspark.sql import types as T  # noqa: N812

from contract.json_text import loads
from pipeline.ingest.json_types import KeptAsText, check_size, widened

MAX_LEVELS = 100
_VOID, _BOOLEAN, _LONG, _DOUBLE, _STRING, _VARIANT = "void", "boolean", "bigint", "double", "string", "variant"
_WHOLE, _LARGE = "decimal(20,0)", "decimal(38,0)"
_NUMBERS = (_LONG, _WHOLE, _LARGE, _DOUBLE)
"""Each holds the values of those before it, or those that it rounds are text."""
_WHOLE_DIGITS, _MOST_DIGITS = 20, 38
_Kind = Any
"""One of the names above, a list with the kind of an array's elements, or a dictionary with that of an object's fields."""


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


class DocumentType:
    """The common type of documents."""

    def __init__(self) -> None:
        self._seen: _Kind = _VOID
        self._unrounded: _Kind = _VOID

    def add(self, value: bytes) -> bool:
        """Adds a document. False, and nothing else, for a value that `ingest` would not use."""
        try:
            loads(value)
            document = json.loads(value, parse_int=_Number, parse_float=_Number, object_pairs_hook=_object)
        except (ValueError, RecursionError):
            return False
        if not isinstance(document, dict) or _is_deeper(document, MAX_LEVELS):
            return False
        self._seen = _merged(self._seen, _kind(document, rounded=None))
        self._unrounded = _merged(self._unrounded, _kind(document, rounded=_STRING))
        return True

    def columns(self) -> tuple[T.StructType, KeptAsText]:
        """The columns, and which of them hold JSON text, and why. Raises AmbiguousNames, and TooManyFields."""
        kept_as_text: KeptAsText = {}
        seen, unrounded = (T.StructType() if kind == _VOID else _type(kind) for kind in (self._seen, self._unrounded))
        found = widened(T.StructType(), seen, kept_as_text, unrounded)
        check_size(found)
        return found, kept_as_text


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    if len({name.lower() for name, _ in pairs}) < len(pairs):
        msg = "an object has a name twice, or two names that differ in case only"
        raise ValueError(msg)
    return dict(pairs)


def _is_deeper(document: dict[str, Any], levels: int) -> bool:
    """Whether its objects and arrays are nested deeper; Python's own stack may not reach so far."""
    of_level: list[Any] = [document]
    for _ in range(levels):
        inner = (value for outer in of_level for value in (outer.values() if isinstance(outer, dict) else outer))
        of_level = [value for value in inner if isinstance(value, dict | list)]
    return bool(of_level)


def _kind(value: Any, *, rounded: _Kind) -> _Kind:  # noqa: ANN401 - any JSON value
    """rounded: the kind of numbers that a double rounds; None: their own."""
    match value:
        case None:
            return _VOID
        case bool():
            return _BOOLEAN
        case _Number():
            return (_is_rounded(value) and rounded) or _kind_of_number(value)
        case str():
            return _STRING
        case list():
            return [reduce(_merged, (_kind(one, rounded=rounded) for one in value), _VOID)]
    return {name: _kind(one, rounded=rounded) for name, one in value.items()}


def _kind_of_number(text: str) -> _Kind:
    if re.fullmatch(rf"-?\d{{1,{_MOST_DIGITS}}}", text):
        return _LONG if -(2**63) <= int(text) < 2**63 else _whole(int(text))
    if _is_rounded(text):
        return _STRING
    _, digits, exponent = Decimal(text).as_tuple()
    if "e" in text.lower() or max(len(digits), -int(exponent)) > _MOST_DIGITS:
        return _DOUBLE
    return _whole(int(Decimal(text))) if Decimal(text) == int(Decimal(text)) else _DOUBLE


def _whole(number: int) -> _Kind:
    return _WHOLE if len(str(abs(number))) <= _WHOLE_DIGITS else _LARGE


def _is_rounded(number: str) -> bool:
    """Whether a double has other digits."""
    return _digits(number) != _digits(repr(float(number)))


def _digits(number: str) -> str:
    return re.sub(r"[eE].*|[-.]", "", number).strip("0")


def _merged(one: _Kind, other: _Kind) -> _Kind:
    if other in (one, _VOID):
        return one
    match one, other:
        case "void", _:
            return other
        case str(), str() if one in _NUMBERS and other in _NUMBERS:
            return max(one, other, key=_NUMBERS.index)
        case list(), list():
            return [_merged(one[0], other[0])]
        case dict(), dict():
            return one | {name: _merged(one.get(name, _VOID), kind) for name, kind in other.items()}
    return _VARIANT


def _type(kind: _Kind) -> Any:  # noqa: ANN401 - a StructType for an object
    match kind:
        case list():
            return T.ArrayType(_type(kind[0]))
        case dict():
            # In Java's order of texts, as the fields of a variant.
            return T.StructType(
                [T.StructField(name, _type(kind[name])) for name in sorted(kind, key=lambda name: name.encode("utf-16-be"))]
            )
        case "variant":
            return T.VariantType()
    if kind in (_WHOLE, _LARGE):
        return T.DecimalType(_WHOLE_DIGITS if kind == _WHOLE else _MOST_DIGITS, 0)
    return {_VOID: T.NullType, _BOOLEAN: T.BooleanType, _LONG: T.LongType, _DOUBLE: T.DoubleType, _STRING: T.StringType}[kind]()
