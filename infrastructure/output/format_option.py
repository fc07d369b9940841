"""The option `--format`: output for a person or a script."""

from typing import Annotated, Literal

import typer

_OPTION = typer.Option("--format", help="how to print")
FormatOption = Annotated[Literal["table", "json"], _OPTION]
RowFormatOption = Annotated[Literal["table", "csv", "json"], _OPTION]
"""The option of commands that print rows of data."""
