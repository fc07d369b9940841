"""The help of commands that have commands: in groups, each command with a whole sentence."""

from collections import defaultdict
from typing import Any

from typer.core import TyperGroup

UNCUT = 1000
"""More characters than a sentence has."""


class GroupedHelp(TyperGroup):
    """Lists its commands by the `rich_help_panel` that each was added with."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002 - typer's own types are private
        """Writes the groups and the commands in each, in the order in which they were added."""
        groups: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for name, command in self.commands.items():
            if not command.hidden:
                groups[getattr(command, "rich_help_panel", None) or "Commands"].append((name, command.get_short_help_str(UNCUT)))
        for group, commands in groups.items():
            with formatter.section(group):
                formatter.write_dl(commands)
