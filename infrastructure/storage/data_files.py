"""Finds the files of `data/`: next to the packages in a checkout, inside `infrastructure` in an installed wheel."""

from pathlib import Path

from infrastructure.errors import StreamgaugeError

_PACKAGE = Path(__file__).parent.parent
_FOLDERS = (_PACKAGE.parent / "data", _PACKAGE / "data")


def data_file(name: str) -> Path:
    """The path of `data/<name>`. Raises StreamgaugeError if it is missing from the installation."""
    for folder in _FOLDERS:
        if (folder / name).exists():
            return folder / name
    msg = f"data file {name} not found in {' or '.join(str(folder) for folder in _FOLDERS)}; reinstall Streamgauge"
    raise StreamgaugeError(msg)
