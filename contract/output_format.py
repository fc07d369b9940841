"""The option `--format`."""

from enum import StrEnum
from typing import Annotated

import typer


class Format(StrEnum):
    """Output for a person or a script."""

    TABLE = "table"
    JSON = "json"


class RowFormat(StrEnum):
    """Output formats for commands that print rows of data."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


FormatOption = Annotated[Format, typer.Option("--format", help="how to print")]
RowFormatOption = Annotated[RowFormat, typer.Option("--format", help="how to print")]
