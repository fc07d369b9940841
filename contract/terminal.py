"""The terminal: results go to standard output, messages to standard error. Both print text as it is, in long lines."""

from rich.console import Console

out = Console(soft_wrap=True, highlight=False, markup=False, emoji=False)
err = Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)


def can_redraw(console: Console) -> bool:
    """Whether what was shown can be drawn over: on a terminal, but for one with TERM=dumb. Elsewhere, new lines have to say what changes."""
    return console.is_terminal and not console.is_dumb_terminal
