"""The terminal: results go to standard output, messages to standard error. Both print text as it is, in long lines."""

from rich.console import Console

out = Console(soft_wrap=True, highlight=False, markup=False, emoji=False)
err = Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)


def warn(text: str) -> None:
    """Prints a warning to standard error."""
    err.print(f"warning: {text}")


def can_redraw(console: Console) -> bool:
    """Whether output can be overwritten: on a terminal, unless TERM=dumb. Elsewhere, print new lines."""
    return console.is_terminal and not console.is_dumb_terminal
