"""The shell of `streamgauge sql`, typed into: keys in, text out."""

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from contract.settings import Settings
from pipeline.lake.shell import Shell

ENTER, END, UP = "\r", "\x04", "\x1b[A"


@pytest.fixture(scope="module")
def settings(spark, tmp_path_factory):
    chosen = Settings(home=tmp_path_factory.mktemp("home"))
    spark.range(3).write.format("delta").save(str(chosen.lake / "trips"))
    return chosen


@pytest.fixture
def typed(spark, settings, capsys):
    """What the shell prints for the keys."""

    def answered(keys):
        with create_pipe_input() as keyboard, create_app_session(input=keyboard, output=DummyOutput()), ThreadPoolExecutor(1) as thread:
            keyboard.send_text(keys)
            # The main thread has an event loop already if the same worker has a browser.
            thread.submit(copy_context().run, Shell(spark, settings, limit=2).run).result()
        return capsys.readouterr().out

    return answered


def test_a_statement_may_take_several_lines_and_ends_with_a_semicolon(typed):
    out = typed(f"select sum(id) as{ENTER}total from trips;{ENTER}{END}")
    assert "total" in out
    assert "3" in out
    assert "1 row; " in out


def test_an_error_is_one_line_and_the_shell_goes_on(typed):
    out = typed(f"select colour from trips;{ENTER}drop table trips;{ENTER}select max(id) from trips;{ENTER}quit{ENTER}")
    assert [line.split(":")[1].strip() for line in out.splitlines() if line.startswith("error")] == [
        "Spark does not take this query",
        "only queries are allowed, such as `select ... from ...`; this is another kind of statement, and it was not executed",
    ]
    assert "max(id)" in out


def test_more_rows_than_the_limit_are_announced(typed):
    assert "only the first 2 rows; --limit" in typed(f"select * from trips;{ENTER}{END}")


def test_the_history_outlives_the_shell(typed, settings):
    typed(f"select 'once' as word;{ENTER}{END}")
    assert typed(f"{UP}{ENTER}{END}").count("once") == 1
    assert "select 'once' as word;" in (settings.home / "sql_history").read_text()


def test_tables_lists_what_has_come_meanwhile(typed, spark, settings):
    assert "rides" not in typed(f"tables{ENTER}{END}")
    spark.range(1).write.format("delta").save(str(settings.lake / "rides"))
    out = typed(f"tables{ENTER}{END}")
    assert "rides" in out
    assert "live_nest_camera_stats" in out


def test_tab_completes_keywords_tables_and_columns(spark, settings):
    with create_pipe_input() as keyboard, create_app_session(input=keyboard, output=DummyOutput()):
        completer = Shell(spark, settings, limit=1)._prompt.completer
    completions = {"select max(i": "id", "select * from tri": "trips", "select * from live_n": "live_nest_camera_stats", "sel": "select"}
    for text, completion in completions.items():
        assert completion in [found.text for found in completer.get_completions(Document(text), None)], text
