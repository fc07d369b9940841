"""The terminal: results go to standard output, messages to standard error. Both print text as it is, in long lines."""

from rich.console import Console

out = Console(soft_wrap=True, highlight=False, markup=False, emoji=False)
err = Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)
