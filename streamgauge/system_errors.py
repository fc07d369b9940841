"""Errors of the operating system as one line: what was found, where, and what to do."""

import errno
import os
from contextlib import suppress
from pathlib import Path

from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings

_FULL = "free some space there"
_ADVICE = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EMFILE: "raise the limit (`ulimit -n`), then start again",
    errno.ENFILE: "end other programs, then start again",
    errno.EAGAIN: "raise the limit of processes (`ulimit -u`), or end other programs, then start again",
    errno.ENOMEM: "end other programs, then start again",
    errno.ENAMETOOLONG: "choose a shorter path",
    errno.ELOOP: "its links lead in a circle: correct them",
    errno.ENOTDIR: "a part of this path is a file: correct the path, or move the file away",
    errno.EISDIR: "a file was expected: move the folder away",
    errno.EEXIST: "move it away",
    errno.ENOENT: "create the folder that it needs, or correct the path",
}
_FULL_SOMEWHERE = "free some space, under STREAMGAUGE_HOME or where the output goes"
_WITHOUT_PLACE = {
    errno.ENOENT: "the current folder was deleted: change to another",
    errno.ENOSPC: _FULL_SOMEWHERE,
    errno.EDQUOT: _FULL_SOMEWHERE,
}
_NO_ACCESS = "give this user access there"
_FOLDERS = {"STREAMGAUGE_CACHE": "cache", "LAKE_URI": "lake_uri", "STREAMGAUGE_JAVA_HOME": "java_home", "STREAMGAUGE_HOME": "home"}


def as_line(error: OSError) -> str:
    """The error as a user reads it. It names the setting of the folder in which it happened, if there is one."""
    reason = error.strerror or str(error) or type(error).__name__
    if error.filename is None:
        advice = _WITHOUT_PLACE.get(error.errno or 0) or _ADVICE.get(error.errno or 0)
        return f"{reason}{f'; {advice}' if advice else ''}"
    place = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else str(error.filename)
    variable = _setting_of(place)
    choose = f", or choose another {variable}" if variable else ""
    return f"cannot use {place}: {reason}; {_ADVICE.get(error.errno or 0, _NO_ACCESS)}{choose}"


def _setting_of(place: str) -> str | None:
    """The variable whose folder holds `place`, or lies in it."""
    with suppress(StreamgaugeError, OSError):
        settings, path = Settings.from_environment(), Path(place).absolute()
        for variable, name in _FOLDERS.items():
            if text := str(getattr(settings, name)):
                folder = Path(text).absolute()
                if path.is_relative_to(folder) or folder.is_relative_to(path):
                    return variable
    return None
