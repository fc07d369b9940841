"""Forms of JSON texts: patterns that match only records that are in order, in a tenth of the time that parsing takes.

A text that has a form is JSON as docs/values.md accepts it. The names of an object have a fixed order, so none is repeated, and strings contain no
escapes. A text without the form may also be in order, and is parsed.

The patterns are those of RE2, over bytes. They are small, because RE2 becomes slow with many states.
"""

_CHARACTER = (
    r"(?:[ !#-\[\]-~]|[\xC2-\xDF][\x80-\xBF]|\xE0[\xA0-\xBF][\x80-\xBF]|[\xE1-\xEC\xEE\xEF][\x80-\xBF]{2}|\xED[\x80-\x9F][\x80-\xBF]"
    r"|\xF0[\x90-\xBF][\x80-\xBF]{2}|[\xF1-\xF3][\x80-\xBF]{3}|\xF4[\x80-\x8F][\x80-\xBF]{2})"
)
"""A UTF-8 character that stands for itself in a string: no quote, backslash, control character or half of a surrogate pair."""
TEXT = f'"{_CHARACTER}*"'
IDENTIFIER = r'"[ !#-\[\]-~]{0,100}"'
FLAG = "(?:true|false)"
WHOLE = "(?:0|[1-9][0-9]{0,8})"
DEGREES = r"(?:0|-?[1-9][0-9]{0,2})(?:\.[0-9]{1,2})?"
_DAY = "(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
MOMENT = rf'"(?:19[7-9]|20[0-9])[0-9]-{_DAY}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{{3}})?Z"'


def fields(first: tuple[str, str], *others: tuple[str, str]) -> str:
    """An object with the fields in this order: each a name, followed by a question mark if the field may be missing, and the form of its value."""
    rest = (f'(?:,"{name.removesuffix("?")}":{value}){"?" if name.endswith("?") else ""}' for name, value in others)
    return rf'\{{"{first[0]}":{first[1]}{"".join(rest)}\}}'


def entry(value: str) -> str:
    """An object with one field of any name, or none."""
    return rf"\{{(?:{IDENTIFIER}:{value})?\}}"


def elements(value: str) -> str:
    """An array."""
    return rf"\[(?:{value}(?:,{value})*)?\]"
