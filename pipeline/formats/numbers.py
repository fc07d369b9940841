"""Numbers in JSON text that Spark does not keep exactly. `as_text` makes them strings, which are kept."""

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

_MAY_BE_LOST = r"[0-9][0-9.]{15}|[eE][+-]?[0-9]{3}"
_MOST_DIGITS = 38
_NUMBER, _WHOLE = r"\A-?[0-9]", rf"\A-?[0-9]{{1,{_MOST_DIGITS}}}\z"
_BETWEEN_TOKENS = r"(?<=[\s,:\[\]{}])|(?=[\s,:\[\]{}])"
_BACKSLASH, _QUOTE = (r"\\", "\x01"), (r"\"", "\x02")
"""Escapes within strings, and characters that no JSON text has."""


def is_rounded(number: Column) -> Column:
    """Whether a double that is made of the number has other digits. A double has 15 to 17 of them."""
    return _digits(number) != _digits(number.try_cast("double").cast("string"))


def is_lost(number: Column) -> Column:
    """Whether neither a bigint, a decimal(38,0) nor a double keeps the number."""
    return ~number.rlike(_WHOLE) & is_rounded(number)


def is_long(number: Column) -> Column:
    """Whether the number has more digits than a decimal holds, zeros included."""
    return F.length(_all_digits(number)) > _MOST_DIGITS


def as_text(document: Column, condition: Callable[[Column], Column]) -> Column:
    """The JSON text `document`, with the numbers that meet the condition as strings."""

    def outside_strings(part: Column) -> Column:
        tokens = F.split(part, _BETWEEN_TOKENS)
        quoted = F.transform(
            tokens, lambda token: F.when(token.rlike(_NUMBER) & condition(token), F.concat(F.lit('"'), token, F.lit('"'))).otherwise(token)
        )
        return F.array_join(quoted, "")

    hidden = document
    for escape, instead in (_BACKSLASH, _QUOTE):
        hidden = F.replace(hidden, F.lit(escape), F.lit(instead))
    # Between two quotes is a string, and every other part is outside of strings.
    parts = F.transform(F.split(hidden, '"'), lambda part, number: F.when(number % 2 == 0, outside_strings(part)).otherwise(part))
    shown = F.array_join(parts, '"')
    for escape, instead in (_QUOTE, _BACKSLASH):
        shown = F.replace(shown, F.lit(instead), F.lit(escape))
    return F.when(may_be_lost(document), shown).otherwise(document)


def may_be_lost(document: Column) -> Column:
    """Whether the text may have a number that meets one of the conditions. Nearly all texts have none, and stay as they are."""
    return document.rlike(_MAY_BE_LOST)


def _digits(number: Column) -> Column:
    """Its significant digits, without sign, point, exponent and the zeros at both ends."""
    return F.regexp_replace(_all_digits(number), r"\A0+|0+\z", "")


def _all_digits(number: Column) -> Column:
    return F.regexp_replace(number, r"[eE].*|[-.]", "")
