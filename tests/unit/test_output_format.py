"""The option --format of every command that has it, and what typer refuses by itself."""

import pytest
from running import one_line_error, streamgauge

from infrastructure.settings import Settings

ROWS, REPORT = "'table', 'csv', 'json'", "'table', 'json'"


@pytest.mark.parametrize(
    ("command", "formats"),
    [
        (("report", "nest-camera-stats"), ROWS),
        (("query",), ROWS),
        (("status",), REPORT),
        (("dead-letters",), REPORT),
        (("records", "nest-logs"), REPORT),
        (("verify",), REPORT),
        (("doctor",), REPORT),
    ],
    ids=lambda found: found[0] if isinstance(found, tuple) else "",
)
def test_another_format_is_refused_with_those_there_are(command, formats, tmp_path):
    line = one_line_error(streamgauge(*command, "--format", "xml", settings=Settings(home=tmp_path), without_spark=True))
    assert "--format" in line
    assert f"'xml' is not one of {formats}" in line


def test_a_table_that_is_watched_is_not_json(tmp_path):
    line = one_line_error(streamgauge("status", "--watch", "--format", "json", settings=Settings(home=tmp_path)))
    assert "--watch cannot be combined with --format json" in line


@pytest.mark.parametrize("arguments", [("nonsense",), ("status", "--nonsense"), ("report",), ("produce", "nest", "--rate", "fast")])
def test_what_typer_refuses_is_one_line_too(arguments, tmp_path):
    one_line_error(streamgauge(*arguments, settings=Settings(home=tmp_path)))


def test_without_a_domain_there_is_help(tmp_path):
    done = streamgauge("produce", settings=Settings(home=tmp_path))
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: ")
