"""Writes docs/commands.md from the help of the commands: `python docs/commands.py`."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.main import get_command

from streamgauge.cli import app

PAGE = Path(__file__).with_suffix(".md")
HEAD = """# Commands

`.venv/bin/streamgauge COMMAND --help` prints the same. An option without a default is off, zero or unset unless you set it.

## Exit codes

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | checked, and something is wrong: a row, the machine, a derived table, an exercise |
| 2 | not done, or not all of it: the command, a setting or what the line names has to be corrected |
| 3 | a server does not answer: the same command may succeed later |
| 70 | a fault in Streamgauge; the traceback is above the line |
| 128 and the number of a signal | a signal ended it before it was done: 130 for Ctrl-C, 143 for SIGTERM; 141 if nobody reads its output any more |

A command that runs until it is stopped ends with 0 when it is stopped. Of several that apply, `verify` uses the first of 1, 2 and 0.

## Options before the command

`--install-completion` sets up Bash, Zsh, Fish or PowerShell. The shell then completes commands, options, and the names of queries, topics and logs.

"""
COMMAND: Any = get_command(app)


def page() -> str:
    """The page: a section for each command, in the order of `streamgauge --help`."""
    return HEAD + _list(COMMAND) + "".join(_section(name, one, "##") for name, one in COMMAND.commands.items() if not one.hidden)


def _section(name: str, command: Any, level: str) -> str:  # noqa: ANN401 - typer's own
    arguments = "".join(f" {_as_argument(one)}" for one in command.params if one.param_type_name == "argument")
    parameters = _list(command)
    below = "".join(_section(f"{name} {inner}", one, "###") for inner, one in getattr(command, "commands", {}).items())
    return f"\n{level} {name}{arguments}\n\n{command.help}\n" + (f"\n{parameters}" if parameters else "") + below


def _list(command: Any) -> str:  # noqa: ANN401 - typer's own
    return "".join(f"* {line}\n" for line in _parameters(command))


def _as_argument(argument: Any) -> str:  # noqa: ANN401 - typer's own
    name = argument.name.upper()
    return f"[{name}]..." if argument.nargs < 0 else name if argument.required else f"[{name}]"


def _parameters(command: Any) -> Iterator[str]:  # noqa: ANN401 - typer's own
    for one in command.params:
        if one.help and one.name != "help":
            name = one.name.upper() if one.param_type_name == "argument" else _as_option(one, command)
            text, _, in_words = " ".join(one.help.split()).removesuffix("]").partition(" [default: ")
            default = in_words or ("" if one.default is True or callable(one.default) else one.default)
            yield f"`{name}`: {_sentence(text, default)}"


def _as_option(option: Any, command: Any) -> str:  # noqa: ANN401 - typer's own
    """The option as its help has it, with values such as <table|json> and TIME, and without the names of types such as <str>."""
    return re.sub(r" <[^|>]+>", "", option.get_help_record(typer.Context(command))[0])


def _sentence(text: str, default: Any) -> str:  # noqa: ANN401 - of any option
    first = text.split(maxsplit=1)[0]
    capital = first.capitalize() if first.strip(",").isalpha() and first.islower() else first
    return f"{capital}{text.removeprefix(first).rstrip('.')}{f' (default: {default})' if default else ''}."


if __name__ == "__main__":
    PAGE.write_text(page())
