"""Finds the files of `data/`: beside the packages in a checkout, inside this package in an installed wheel."""

from pathlib import Path

from streamgauge.errors import StreamgaugeError

_HERE = Path(__file__).parent
_FOLDERS = (_HERE.parent / "data", _HERE / "data")


def data_file(name: str) -> Path:
    """The path of `data/<name>`; raises StreamgaugeError if this installation lacks it."""
    for folder in _FOLDERS:
        if (folder / name).exists():
            return folder / name
    msg = f"data file {name} not found in {' or '.join(str(folder) for folder in _FOLDERS)}; install Streamgauge anew"
    raise StreamgaugeError(msg)
