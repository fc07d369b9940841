"""Parses and formats sasl.jaas.config: a Java login module and its options."""

import re
from collections.abc import Mapping
from typing import NamedTuple

_ENTRY = re.compile(r"\s*([\w.$]+)\s+(?:required|requisite|sufficient|optional)\b(.*);\s*", re.DOTALL | re.IGNORECASE)
_OPTION = re.compile(r"""\s*([\w.]+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([^\s;"']+))""", re.DOTALL)


class LoginModule(NamedTuple):
    """A login module: its simple class name, such as ScramLoginModule, and its options."""

    name: str
    options: Mapping[str, str]


def login_module(text: str) -> LoginModule | None:
    """The login module in `text`. None unless `text` has the form `class required name="value" ...;` with a single module."""
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
    """The value of sasl.jaas.config for `module_class`. options: values without quotes and backslashes."""
    told = " ".join(f'{name}="{value}"' for name, value in options.items())
    return f"{module_class} required {told};"
