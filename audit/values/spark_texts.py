"""JSON as Spark writes it into a column of texts, where a value is not a string.

Spark's parser copies such a value token by token. A number with a point or an exponent becomes the nearest double, as Java writes it.
"""

import json
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from audit.values.json_texts import AS_WRITTEN

_MOST_DIGITS = 38
_ESCAPES = {
    **{number: rf"\u{number:04X}" for number in range(0x20)},
    **{ord(character): rf"\{short}" for character, short in zip('\b\t\n\f\r"\\', 'btnfr"\\', strict=True)},
}


def text_of(value: str) -> str:
    """The text of a JSON value that is no string. value: as DuckDB has it after `json_texts.json_text`."""
    return _text_of(value, _double)


def exact_text_of(value: str) -> str:
    """As `text_of`, but a number is a string of its digits if no double keeps them, or if there are more than 38."""
    return _text_of(value, lambda number: f'"{number}"' if _is_lost(number) or len(_digits(number)) > _MOST_DIGITS else _double(number))


class _Number(str):
    """A number, as it is written."""

    __slots__ = ()


def _text_of(value: str, written: Callable[[str], str]) -> str:
    read = _unmarked(json.loads(value, parse_int=_Number, parse_float=_Number))
    text = _json(read, written)
    is_digits = isinstance(read, _Number) and text == f'"{read}"'
    return str(read) if is_digits else text


def _json(value: Any, written: Callable[[str], str]) -> str:  # noqa: ANN401 - any JSON value
    match _unmarked(value):
        case _Number() as number:
            return written(number)
        case str() as text:
            return _quoted(text)
        case dict() as fields:
            return "{" + ",".join(f"{_quoted(name)}:{_json(field, written)}" for name, field in fields.items()) + "}"
        case list() as elements:
            return "[" + ",".join(_json(element, written) for element in elements) + "]"
        case other:
            return json.dumps(other)


def _unmarked(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    is_marked = isinstance(value, str) and value.startswith(AS_WRITTEN)
    return _Number(value.removeprefix(AS_WRITTEN)) if is_marked else value


def _quoted(text: str) -> str:
    """A string in JSON, with the escapes of Java's Jackson: also of both halves of a character beyond the first 65,536."""
    escaped = text.translate(_ESCAPES)
    return '"' + "".join(character if character <= "\uffff" else _halves(character) for character in escaped) + '"'


def _halves(character: str) -> str:
    units = character.encode("utf-16-be")
    return rf"\u{units[:2].hex().upper()}\u{units[2:].hex().upper()}"


def _double(number: str) -> str:
    """A number as Java writes it: a whole one with its digits, else the nearest double."""
    if _is_whole(number):
        return str(int(number)) if number == "-0" else number
    double = float(number)
    if math.isinf(double):
        return '"-Infinity"' if double < 0 else '"Infinity"'
    sign, digits, exponent = _shortest(double)
    if -3 <= exponent < 7:  # noqa: PLR2004 - as Double.toString has it
        digits, point = "0" * -exponent + digits.ljust(exponent + 2, "0"), max(exponent, 0) + 1
        return f"{sign}{digits[:point]}.{digits[point:]}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _shortest(double: float) -> tuple[str, str, int]:
    """The sign, the digits that tell the double from all others, and the exponent of the first one. Instead of one digit, Java takes the best two."""
    number = Decimal(repr(double)).normalize()
    if len(number.as_tuple().digits) == 1:
        number = Decimal(f"{double:.1e}").normalize()
    return "-" if number.is_signed() else "", "".join(map(str, number.as_tuple().digits)), number.adjusted()


def _is_lost(number: str) -> bool:
    """Whether the number is not whole, and a double has other digits."""
    return not _is_whole(number) and _digits(number).strip("0") != _digits(_double(number)).strip("0")


def _is_whole(number: str) -> bool:
    return number.lstrip("-").isdecimal()


def _digits(number: str) -> str:
    """Its digits, without sign, point and exponent."""
    return re.sub(r"[eE].*|[-.]", "", number)
