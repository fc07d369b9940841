"""What programs print on the terminal."""

import errno
import os

import pytest
from rich.console import Console
from running import streamgauge

from contract.settings import Settings
from contract.terminal import can_redraw, err, out
from streamgauge import cli


def test_text_is_printed_as_it_is(capsys):
    line = f"topic a:key:b [red]c[/] {'d' * 200}"
    out.print(line)
    err.print(line)
    assert capsys.readouterr() == (f"{line}\n", f"{line}\n")


@pytest.mark.parametrize(("is_terminal", "term", "expected"), [(True, "xterm", True), (True, "dumb", False), (False, "xterm", False)])
def test_a_pipe_and_a_dumb_terminal_are_not_drawn_over(is_terminal, term, expected):
    assert can_redraw(Console(force_terminal=is_terminal, _environ={"TERM": term})) is expected


@pytest.fixture
def fail(monkeypatch):
    """Runs a command that the operating system refuses a file, with this number of an error."""

    def run(number):
        def app(**_):
            raise OSError(number, os.strerror(number), "/data/kafka/start.lock")

        monkeypatch.setattr(cli, "app", app)
        return streamgauge("up", settings=Settings())

    return run


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT])
def test_a_file_that_cannot_be_written_is_one_line(fail, number):
    done = fail(number)
    assert done.stderr.startswith(f"error: cannot use /data/kafka/start.lock: {os.strerror(number)}; give this user access and free space")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


def test_another_error_of_a_file_is_a_bug_and_shows_where_it_comes_from(fail):
    with pytest.raises(NotADirectoryError):
        fail(errno.ENOTDIR)
