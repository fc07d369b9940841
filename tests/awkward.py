"""Paths as other people have them: a checkout and a home whose names hold what shells, Java, Spark and addresses treat as special."""

import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAME = """o'clock "5 %41" $HOME é"""
HOME = "Home, a;b:c*[d]{e}"
"""For a folder of data. A checkout's path cannot have a colon, which separates paths for Python and Java."""
TRAPS = (
    "pipeline/__init__.py",
    "dashboard/__init__.py",
    "producers/__init__.py",
    "contract/__init__.py",
    "infrastructure/__init__.py",
    "queue.py",
    "typer.py",
)
"""Modules with the names of ours, of Python and of a dependency."""


@dataclass(frozen=True)
class Checkout:
    """A copy of this checkout, with an environment of its own, and a folder to stand in that is full of TRAPS."""

    folder: Path
    traps: Path

    @property
    def command(self) -> list[str]:
        """`streamgauge`, as its script runs it."""
        return [str(self.folder / ".venv" / "bin" / "python"), "-P", "-m", "streamgauge.cli"]

    @property
    def variables(self) -> dict[str, str]:
        """What makes its Python take the copy: the packages are those of this checkout, which come later."""
        return {"PYTHONPATH": str(self.folder)}


def folder_of_traps(folder: Path) -> Path:
    """The folder, with TRAPS."""
    for name in TRAPS:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("raise SystemExit('a module of the folder that one stands in was imported')\n")
    return folder


def checkout(below: Path) -> Checkout:
    """A copy named NAME in the folder `below`. Its environment's packages are a link to those that are installed."""
    folder = below / NAME
    for room in ("infrastructure", "contract", "streamgauge", "producers", "pipeline", "audit", "dashboard", "data"):
        shutil.copytree(ROOT / room, folder / room, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / ".venv"], check=True)
    packages = folder / ".venv" / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
    shutil.rmtree(packages)
    packages.symlink_to(sysconfig.get_path("purelib"))
    return Checkout(folder, folder_of_traps(below / f"traps {NAME}"))


def cache(below: Path, cache: Path) -> Path:
    """The same cache under a path with NAME."""
    link = below / f"cache {NAME}"
    link.symlink_to(cache.absolute())
    return link
