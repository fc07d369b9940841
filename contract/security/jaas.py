"""The value of sasl.jaas.config: a login module of Java's, and what it is told."""

import re
from collections.abc import Mapping
from typing import NamedTuple

_ENTRY = re.compile(r"\s*([\w.$]+)\s+(?:required|requisite|sufficient|optional)\b(.*);\s*", re.DOTALL | re.IGNORECASE)
_OPTION = re.compile(r"""\s*([\w.]+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([^\s;"']+))""", re.DOTALL)


class LoginModule(NamedTuple):
    """A login module: the last part of its class, such as ScramLoginModule, and its options."""

    name: str
    options: Mapping[str, str]


def login_module(text: str) -> LoginModule | None:
    """The one login module of `text`; None when it is not of the form `class required name="value" ...;`."""
    entry = _ENTRY.fullmatch(text)
    if entry is None:
        return None
    options, rest = {}, entry[2]
    while rest.strip():
        option = _OPTION.match(rest)
        if option is None:
            return None
        quoted = option[2] if option[2] is not None else option[3]
        options[option[1]] = re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else option[4]
        rest = rest[option.end() :]
    return LoginModule(entry[1].rpartition(".")[2], options)


def as_text(module_class: str, options: Mapping[str, str]) -> str:
    """The value of sasl.jaas.config for `module_class`. options: without quotes and backslashes."""
    told = " ".join(f'{name}="{value}"' for name, value in options.items())
    return f"{module_class} required {told};"
