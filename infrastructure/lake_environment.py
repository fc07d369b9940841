"""Continues a command that needs Delta in the environment `lake/`, whose Spark has Delta.

When Delta has a version for the main environment's Spark: move delta-spark and the bundle `delta` there, and delete this module, what calls it,
the folder `lake/` and its targets in the Makefile.
"""

import os
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from infrastructure.errors import StreamgaugeError

HAS_DELTA = find_spec("delta") is not None and version("pyspark").startswith("4.2.")
"""Whether this is the environment with Delta. Its Spark runs all queries in micro-batches.

An environment that was updated from an older version still has Delta, beside a Spark that it is not for.
"""
PYTHON = Path(__file__).parents[1] / "lake" / ".venv" / "bin" / "python"


class NeedsDelta(StreamgaugeError):  # noqa: N818 - what it needs is the message
    """Delta is not here, and its environment is not installed."""

    def __init__(self, needed_by: str) -> None:
        super().__init__(
            f"{needed_by} needs Delta, which has no version for Spark 4.3 yet; install it once, with its own Spark: `make lake`, in a clone of "
            "Streamgauge (docs/lake.md)"
        )


def continue_with_delta(needed_by: str) -> None:
    """Unless Delta is here, replaces this process by the same command in the environment that has it. Call it before anything is open.

    needed_by: what needs Delta, for the message. Raises NeedsDelta if that environment is not installed.
    """
    if HAS_DELTA:
        return
    if not PYTHON.exists() or Path(sys.executable) == PYTHON:  # itself, if its installation was interrupted
        raise NeedsDelta(needed_by)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(PYTHON, [str(PYTHON), "-P", "-m", "streamgauge.cli", *sys.argv[1:]])  # noqa: S606


def is_delta_here() -> bool:
    """Whether Delta is in this environment, or `continue_with_delta` would find it."""
    return HAS_DELTA or PYTHON.exists()
