"""The commands that the documents name against those of the code."""

import re
import runpy
import shlex
from contextlib import suppress

import pytest
from documents import DOCUMENTS, ROOT, named
from typer.testing import CliRunner

from infrastructure.settings import Settings
from pipeline import catalog
from streamgauge.cli import app

REFERENCE = runpy.run_path(str(ROOT / "docs" / "commands.py"))
OF_THE_WALK = {"produce weather"}
"""What docs/add-a-domain.md adds."""


def commands(group, prefix=""):
    for name, command in group.commands.items():
        yield f"{prefix}{name}", command
        if hasattr(command, "commands"):
            yield from commands(command, f"{name} ")


COMMANDS = dict(commands(REFERENCE["COMMAND"]))


def mentions(text):
    """The words after each `streamgauge` in code, up to a comment, a pipe or the next command."""
    code = re.findall(r"^```.*?\n(.*?)^```", text, re.DOTALL | re.MULTILINE) + re.findall(
        r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    )
    for line in "\n".join(code).splitlines():
        for mention in re.findall(r"(?:^|[ /])streamgauge ([a-z][^#|&;()]*)", line):
            with suppress(ValueError):  # a quotation mark that is closed in another line
                yield shlex.split(mention)


def wrong(words):
    """What of a mention the command line lacks."""
    name = " ".join(words[:2]) if " ".join(words[:2]) in COMMANDS | dict.fromkeys(OF_THE_WALK) else words[0]
    if name in OF_THE_WALK:
        return []
    if name not in COMMANDS:
        return [name]
    known = {text for one in COMMANDS[name].params for text in (*one.opts, *one.secondary_opts)} | {"--help"}
    return [f"{name} {word}" for word in words if word.startswith("--") and word.partition("=")[0] not in known]


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_every_command_and_option_that_a_document_names_exists(document):
    assert [what for words in mentions(document.read_text()) for what in wrong(words)] == []


def unknown_queries(words, known):
    """The words that have the form of a domain's query, without a version such as .v2, and name none."""
    if words[0] not in {"run", "report", "state", "reset", "verify", "why"}:
        return []
    return [word for word in words[1:] if (name := re.match(r"((?:nest|taxi|wikimedia)-[a-z-]+)(\.v\d+)?$", word)) and name[1] not in known]


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_every_query_that_a_document_names_exists(document, tmp_path):
    settings = Settings(home=tmp_path, database_url="sqlite:////results.db", delta_archives="all")
    known = {query.name for query in catalog.all_queries(settings)}
    assert [query for words in mentions(document.read_text()) for query in unknown_queries(words, known)] == []


def test_a_query_that_does_not_exist_is_found():
    assert [unknown_queries(words, {"nest-archive"}) for words in mentions("`streamgauge run nest-archive nest-archives --once`")] == [
        ["nest-archives"]
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("`streamgauge runs`", ["runs"]),
        ("`streamgauge verify --fast`", ["verify --fast"]),
        ("```\n.venv/bin/streamgauge produce nest --limit 5 --slow # no\n```\n", ["produce nest --slow"]),
        ("`streamgauge report x | sort --numeric`", []),
    ],
)
def test_a_command_or_option_that_does_not_exist_is_found(text, said):
    assert [what for words in mentions(text) for what in wrong(words)] == said


def test_the_page_of_commands_is_that_of_the_code():
    assert REFERENCE["PAGE"].read_text() == REFERENCE["page"](), "write it anew: .venv/bin/python docs/commands.py"


@pytest.mark.parametrize("group", [(), ("dead-letters",), ("workshop",)], ids=" ".join)
def test_a_list_of_commands_shows_whole_sentences_in_a_terminal_of_80_columns(group):
    shown = CliRunner().invoke(app, [*group, "--help"], env={"COLUMNS": "80"}).output
    listed = [line for line in re.split(r"^(?:Run|Commands):$", shown, flags=re.MULTILINE)[1].splitlines() if line.startswith("  ")]
    assert listed
    assert [line for line in listed if not line.endswith(".") or line.endswith("...")] == [], (
        "let the docstring begin with a short sentence"
    )
