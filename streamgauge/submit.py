"""The command submit."""

import runpy
import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer

from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings


def submit(
    file: Annotated[Path, typer.Argument(help="the program", show_default=False)],
    arguments: Annotated[list[str] | None, typer.Argument(help="its arguments; options after --", show_default=False)] = None,
) -> None:
    """Run a PySpark program of your own. `SparkSession.builder.getOrCreate()` returns Streamgauge's session, with its jars, settings and cluster."""
    from pipeline.spark.session import running_session

    if not file.is_file():
        msg = f"there is no file {file}; expected a program in Python"
        raise StreamgaugeError(msg)
    with running_session(Settings.from_environment()):
        sys.argv = [str(file), *(arguments or [])]
        sys.path.insert(0, str(file.parent.absolute()))  # as `python FILE` does
        try:
            runpy.run_path(str(file), run_name="__main__")
        except Exception:
            traceback.print_exc()
            raise typer.Exit(1) from None
