"""One value, one JSON text: what RFC 8259 allows, read by Spark and nothing lost.

Spark's own reading is lenient: from_json takes the first value of a text and ignores the rest, replaces what is not UTF-8, and accepts
'single quotes' and NaN. Here a text is read as a part of a longer one,

    {"document":TEXT,"end":"..."}

which is whole only if TEXT is one value and nothing else: whatever follows that value hides the end or is an error. A text cannot imitate
the end, because each process draws its own.

Spark does not keep every number of such a text either: `as_text` makes strings of those that it would change.
"""

import uuid
from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from contract.json_text import DOTTED_I, LIKE_OTHERS, MAX_DIGITS

MAX_LEVELS = 999
"""How deep objects and arrays may be nested. Spark's parser takes a level more, the one around the text."""
MAX_NAME_CHARACTERS = 50_000

_END = uuid.uuid4().hex
_CORRUPT = "_corrupt"
_OPTIONS = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": _CORRUPT,
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
}
_ESCAPED_PAIR = r"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
"""An escaped backslash, after which a u is a letter; or both halves of a character beyond the first 65,536."""
_ESCAPED_HALF, _ESCAPED_NUL = r"\\u[dD][89a-fA-F]", r"\\u0000"
_MAY_BE_LOST = r"[0-9][0-9.]{15}|[eE][+-]?[0-9]{3}"
_MOST_DIGITS = 38
_NUMBER, _WHOLE = r"\A-?[0-9]", rf"\A-?[0-9]{{1,{_MOST_DIGITS}}}\z"
_BETWEEN_TOKENS = r"(?<=[\s,:\[\]{}])|(?=[\s,:\[\]{}])"
_BACKSLASH, _QUOTE = (r"\\", "\x01"), (r"\"", "\x02")
"""Escapes within strings, and characters that no JSON text has."""


def parsed(text: Column, fields: str) -> Column:
    """The text's object, in one reading: struct<document: struct<fields>, misfits: boolean>; null if `json_reason` has a reason.

    fields: such as "a string, b array<string>". misfits: whether the text is no object, or a value in it is not of the type in `fields`;
    that value is null.
    """
    reading = F.from_json(_enclosed(text), f"document struct<{fields}>, end string, {_CORRUPT} string", _OPTIONS)

    def checked(read: Column) -> Column:
        is_whole = F.is_valid_utf8(text) & ~_is_beyond_unicode(text) & _is_at_end(text, read) & ~_repeats_a_name(text)
        document = F.struct(read["document"].alias("document"), read[_CORRUPT].isNotNull().alias("misfits"))
        return F.when(is_whole, document)

    # Spark reads the text once when the reading is a lambda's argument, and once per mention otherwise.
    return F.transform(F.array(reading), checked)[0]


def json_reason(text: Column, levels: int = MAX_LEVELS) -> Column:
    """Why the text is not one JSON text that can be kept exactly, or null.

    text: a value as a string. The cast of bytes to a string checks nothing. levels: how deep objects and arrays may be nested.
    """
    is_too_much = text.rlike(rf'\d{{{MAX_DIGITS}}}|"[^"]{{{MAX_NAME_CHARACTERS}}}')
    return (
        F.when(text.isNull() | text.rlike(r"\A[ \t\n\r]*\z"), "empty")
        .when(~F.is_valid_utf8(text), "not UTF-8")
        .when(
            _is_whole(text) & ~_is_beyond_unicode(text) & ~_is_deeper(text, levels),
            F.when(_repeats_a_name(text), "a name is there twice in an object"),
        )
        .when(text.startswith("\ufeff"), "not JSON: it begins with a byte order mark")
        .when(_is_deeper(text, levels), f"not JSON, or nested more than {levels} levels deep")
        .when(_is_whole(text) & _has(text, _ESCAPED_NUL), r"a NUL character (\u0000)")
        .when(_is_whole(text), r"half of a surrogate pair, such as \ud800, which is no character")
        .when(F.try_parse_json(text).isNotNull(), "more than one JSON value, or other text after the first")
        .when(
            is_too_much,
            f"not JSON, or it has a number of more than {MAX_DIGITS:,} digits or a name of more than {MAX_NAME_CHARACTERS:,} characters",
        )
        .otherwise("not JSON")
    )


def names_differ_in_case_only(text: Column) -> Column:
    """Whether an object in the text has two names that differ in case only, at any level. text: without a `json_reason`."""
    lower = F.lower(F.translate(F.to_json(F.try_parse_json(text)), *DOTTED_I))
    return F.try_parse_json(F.translate(lower, *LIKE_OTHERS)).isNull()


def is_rounded(number: Column) -> Column:
    """Whether a conversion to double changes the number. A double has 15 to 17 digits."""
    return _digits(number) != _digits(number.try_cast("double").cast("string"))


def is_lost(number: Column) -> Column:
    """Whether neither a bigint, a decimal(38,0) nor a double keeps the number."""
    return ~number.rlike(_WHOLE) & is_rounded(number)


def is_infinite(number: Column) -> Column:
    """Whether the number is read as a double, because of a point or an exponent, and is too large for one."""
    return number.rlike("[.eE]") & (F.abs(number.try_cast("double")) == float("inf"))


def is_long(number: Column) -> Column:
    """Whether the number has more digits than a decimal holds, zeros included."""
    return F.length(_all_digits(number)) > _MOST_DIGITS


def as_string(number: Column) -> Column:
    """The number as a string in JSON."""
    return F.concat(F.lit('"'), number, F.lit('"'))


def as_text(document: Column, condition: Callable[[Column], Column], replacement: Callable[[Column], Column] = as_string) -> Column:
    """The JSON text `document`, with a replacement for each number that meets the condition."""

    def outside_strings(part: Column) -> Column:
        tokens = F.split(part, _BETWEEN_TOKENS)
        replaced = F.transform(tokens, lambda token: F.when(token.rlike(_NUMBER) & condition(token), replacement(token)).otherwise(token))
        return F.array_join(replaced, "")

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


def _enclosed(text: Column, levels: int = MAX_LEVELS) -> Column:
    """The text within a longer one; a parser that takes MAX_LEVELS + 1 levels takes `levels` of the text."""
    around = MAX_LEVELS - levels
    return F.concat(F.lit('{"document":' + "[" * around), text, F.lit("]" * around + f',"end":"{_END}"}}'))


def _is_whole(text: Column, levels: int = MAX_LEVELS) -> Column:
    """Whether the text is one JSON value without an error; never null."""
    read = F.from_json(_enclosed(text, levels), f"end string, {_CORRUPT} string", _OPTIONS)
    return F.coalesce((read["end"] == _END) & read[_CORRUPT].isNull(), F.lit(False))  # noqa: FBT003


def _is_at_end(text: Column, read: Column) -> Column:
    """As `_is_whole`, of a text that has been read. An error in it is an error of JSON, or a value of another type."""
    return (read["end"] == _END) & (read[_CORRUPT].isNull() | _is_whole(text))


def _is_deeper(text: Column, levels: int) -> Column:
    # The first condition is cheaper. Possessive quantifiers keep no way back, so a long text needs no deep stack.
    return text.rlike(rf"\A(?:[^\[{{]*+[\[{{]){{{levels + 1}}}+") & ~_is_whole(text, levels)


def _is_beyond_unicode(text: Column) -> Column:
    return text.contains("\\u") & (_has(text, _ESCAPED_HALF) | _has(text, _ESCAPED_NUL))


def _repeats_a_name(text: Column) -> Column:
    """Whether an object in a whole text has a name twice, at any level: from_json takes one of the values."""
    return F.try_parse_json(text).isNull()


def _has(text: Column, escape: str) -> Column:
    """Whether the text has the escape, and not one of _ESCAPED_PAIR."""
    return text.rlike(escape) & F.regexp_replace(text, _ESCAPED_PAIR, "").rlike(escape)


def _digits(number: Column) -> Column:
    """The significant digits of a number, without sign, point, exponent and the zeros at both ends."""
    return F.regexp_replace(_all_digits(number), r"\A0+|0+\z", "")


def _all_digits(number: Column) -> Column:
    return F.regexp_replace(number, r"[eE].*|[-.]", "")
