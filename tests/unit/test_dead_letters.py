"""Dead letters as they are shown: bytes in, text out."""

import ast

import orjson
import pytest
from rich.console import Console
from typer.testing import CliRunner

from infrastructure.kafka.dead_letters import letter_of, readable, source_of
from streamgauge.cli import app
from streamgauge.dead_letters import newest
from streamgauge.dead_letters.newest import as_json, as_table


class Letter:
    """A record as Kafka's consumer gives it."""

    def __init__(self, value=b"rubbish", headers=(), timestamp=(1, 1_795_262_400_000)):
        self._value, self._headers, self._timestamp = value, [*headers], timestamp

    def value(self):
        return self._value

    def headers(self):
        return self._headers

    def timestamp(self):
        return self._timestamp

    def offset(self):
        return 7


def headers(**texts):
    told = {"topic": "nest-logs", "partition": "0", "offset": "12", "timestamp": "2026-11-21T11:59:00.000Z", "reason": "not JSON", **texts}
    return [(name, text if text is None else text.encode()) for name, text in told.items()]


def test_a_letter_says_where_it_came_from_and_why():
    row = letter_of(Letter(b'{"a": 1', headers()))
    assert source_of(row) == "nest-logs-0 @ 12"
    assert orjson.loads(as_json([row])) == [
        {
            "letter_offset": 7,
            "at": "2026-11-21T12:00:00Z",
            "topic": "nest-logs",
            "partition": "0",
            "offset": "12",
            "timestamp": "2026-11-21T11:59:00.000Z",
            "reason": "not JSON",
            "bytes": 7,
            "text": '{"a": 1',
        }
    ]


def test_a_null_value_and_missing_headers_are_no_obstacle():
    row = letter_of(Letter(None, [("topic", b"nest-logs"), ("reason", None)]))
    assert (row["reason"], row["bytes"], row["text"], source_of(row)) == ("no reason given", None, "", "nest-logs")


def test_what_never_was_a_record_has_only_a_topic():
    assert source_of(letter_of(Letter(b"x", headers(partition="-1", offset="-1")))) == "nest-logs"


@pytest.mark.parametrize(
    ("value", "largest", "shown"),
    [
        (b"", 10, ""),
        (b"plain", 10, "plain"),
        (b"two\nlines\t.", 20, "two\nlines\t."),
        ("caf\N{LATIN SMALL LETTER E WITH ACUTE}".encode(), 10, "caf\N{LATIN SMALL LETTER E WITH ACUTE}"),
        ("caf\N{LATIN SMALL LETTER E WITH ACUTE}s".encode(), 4, "caf"),
        ("\N{GRINNING FACE}".encode() * 2, 7, "\N{GRINNING FACE}"),
        (b"<b>bold</b>", 20, "<b>bold</b>"),
        (b"x" * 100, 3, "xxx"),
    ],
)
def test_text_is_shown_as_text_and_cut_between_characters(value, largest, shown):
    assert readable(value, largest) == shown


@pytest.mark.parametrize(
    "value",
    [b"\xff\xfe", b"caf\xc3", b"a\x00b", b"\x1b[2J", "\N{RIGHT-TO-LEFT OVERRIDE}abc".encode()],
    ids=["bom", "cut", "null", "escape", "bidi"],
)
def test_everything_else_is_shown_as_python_writes_bytes(value):
    assert ast.literal_eval(readable(value)) == value
    assert readable(value).isprintable()


def test_the_table_has_room_for_the_excerpt_and_obeys_nobody():
    rows = [letter_of(Letter(b"x" * 500, headers(reason="[red]\x1b[2J")))]
    console = Console(width=80)
    with console.capture() as captured:
        console.print(as_table(rows, console.width))
    table = captured.get()
    assert "[red]" in table
    assert "\x1b" not in table
    assert "xxx" in table
    assert max(map(len, table.splitlines())) <= 80


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "no dead letters\n"),
        (["--reason", "JSON", "--limit", "7"], "none of the newest 7 dead letters has this reason; --limit reads more\n"),
    ],
)
def test_without_a_letter_to_show_the_command_says_so(options, said, monkeypatch):
    monkeypatch.setattr(newest, "newest_letters", lambda *_: [])
    assert CliRunner().invoke(app, ["dead-letters", *options]).stdout == said
