"""The PATH for Spark's processes, which start Python as `python3`."""

import os
import sys
from pathlib import Path


def path_with_own_python() -> str:
    """PATH, with the folder of this interpreter first: Spark's Python needs its packages, and its version."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
