"""What programs print on the terminal."""

import pytest
from rich.console import Console

from infrastructure.output.terminal import can_redraw, err, out


def test_text_is_printed_as_it_is(capsys):
    line = f"topic a:key:b [red]c[/] {'d' * 200}"
    out.print(line)
    err.print(line)
    assert capsys.readouterr() == (f"{line}\n", f"{line}\n")


@pytest.mark.parametrize(("is_terminal", "term", "expected"), [(True, "xterm", True), (True, "dumb", False), (False, "xterm", False)])
def test_a_pipe_and_a_dumb_terminal_are_not_drawn_over(is_terminal, term, expected):
    assert can_redraw(Console(force_terminal=is_terminal, _environ={"TERM": term})) is expected
