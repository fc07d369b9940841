"""Reads settings from the environment and from a file, over which the environment takes precedence. A misspelt name is an error."""

import os
import re
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infrastructure.errors import StreamgaugeError
from infrastructure.settings import kinds
from infrastructure.settings.kinds import Kind
from infrastructure.text import printable, without_credentials

CONFIG = "STREAMGAUGE_CONFIG"
"""The variable that names the file."""
_PREFIX = "STREAMGAUGE_"
_FILE = "streamgauge.toml"
_OTHERS = {CONFIG, "STREAMGAUGE_SPARK_WEB_PORT"}
"""Variables with the prefix that are not settings: the second is docker-compose.yaml's."""
_SERVICE_LINK = re.compile(r"STREAMGAUGE_(.*_)?(SERVICE_HOST|SERVICE_PORT|PORT_\d+_)|STREAMGAUGE_(.*_)?PORT=(tcp|udp|sctp)://")
"""Matches NAME=value as Kubernetes sets it in each pod for a Service named streamgauge or streamgauge-..."""


@dataclass(frozen=True)
class ExplicitSetting:
    """An explicit value of a setting. value: text, or a value of TOML. name: for messages. origin: "environment", or the file."""

    value: Any
    name: str
    origin: str

    def read(self, kind: Kind, *, is_secret: bool) -> Any:  # noqa: ANN401 - as Kind.read
        """Converts the value to the type of `kind`. A value of TOML must have that type already. Raises StreamgaugeError if it does not."""
        text = str(self.value).lower() if isinstance(self.value, bool) else str(self.value)
        is_text = isinstance(self.value, str)
        with suppress(ValueError, KeyError):
            value = kind.read(text)
            is_number = isinstance(self.value, int) and isinstance(value, float)
            if is_text or is_number or type(self.value) is type(value):
                return value
        # Text before an @ may be a password, even if it is not a valid URL.
        masked = re.sub(r"(?s).*@", "***@", text)
        shown = "something else" if is_secret else repr(masked) if is_text else masked
        msg = f"{self.name} is {shown}; expected {kind.expected}"
        raise StreamgaugeError(msg)


def explicit_settings(is_secret: Mapping[str, bool], environment: Mapping[str, str] | None = None) -> dict[str, ExplicitSetting]:
    """The settings that have an explicit value, by variable. An empty value counts as not set.

    is_secret: whether a setting is secret, by variable. environment: replaces this process's; the file is then read only if it names one.
    Raises StreamgaugeError for a name that is not a setting, and for a file that cannot be used.
    """
    source = os.environ if environment is None else environment
    variables = {name: value for name, value in source.items() if value and not _SERVICE_LINK.match(f"{name}={value}")}
    for name in sorted(variables):
        if name.startswith(_PREFIX) and name not in _OTHERS and name not in is_secret:
            raise _unknown(name, name, is_secret, "correct or unset it")
    named = variables.get(CONFIG, "")
    in_file = _in_file(is_secret, named) if named or environment is None else {}
    return in_file | {name: ExplicitSetting(variables[name], name, "environment") for name in is_secret if name in variables}


def _in_file(is_secret: Mapping[str, bool], named: str) -> dict[str, ExplicitSetting]:
    try:
        path = kinds.PATH.read(named or _FILE)
    except ValueError as error:
        msg = f"{CONFIG} is {named!r}; expected {kinds.PATH.expected}"
        raise StreamgaugeError(msg) from error
    variables, settings = {_key(variable): variable for variable in is_secret}, {}
    for key, value in _parsed(path, _content(path, named)).items():
        name = f"{path}: {printable(key)}"
        if key not in variables:
            raise _unknown(name, _key(key), variables, "correct or delete it")
        if value != "":
            settings[variables[key]] = ExplicitSetting(value, name, str(path))
    for variable, setting in settings.items():
        holds_secret = is_secret[variable] or without_credentials(str(setting.value)) != str(setting.value)
        if holds_secret and _can_be_closed(path):
            msg = f"{setting.name} is a secret, and every user of this machine can read the file; run `chmod o-r {path}`, or set {variable} instead"
            raise StreamgaugeError(msg)
    return settings


def _can_be_closed(path: Path) -> bool:
    """Whether every user can read the file, and its owner, who runs this, could change that. Not so for a secret that a container mounts."""
    status, is_read_only = path.stat(), bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    return bool(status.st_mode & stat.S_IROTH) and status.st_uid == os.geteuid() and not is_read_only


def _content(path: Path, named: str) -> bytes:
    """The content of the settings file. Empty if it does not exist and `named` is empty.

    A file that STREAMGAUGE_CONFIG does not name may belong to another user, for example in /tmp.
    """
    try:
        status = path.stat()
        if not named and (status.st_uid not in {0, os.geteuid()} or status.st_mode & stat.S_IWOTH):
            msg = f"{path.absolute()} can be written by another user; run `chown $USER` and `chmod o-w` on it, or set {CONFIG}"
            raise StreamgaugeError(msg)
        return path.read_bytes()
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not named:
            return b""
        msg = f"{f'{CONFIG}={path}' if named else path} cannot be read ({error.strerror}); expected a file of settings"
        raise StreamgaugeError(msg) from error


def _parsed(path: Path, content: bytes) -> dict[str, Any]:
    if not content:
        return {}
    import tomllib  # only for those who have such a file

    try:
        return tomllib.loads(content.decode("utf-8-sig").replace("\r\n", "\n"))
    except UnicodeDecodeError as error:
        msg = f"{path} is not UTF-8 text (at line {len(content[: error.start + 1].splitlines())})"
        raise StreamgaugeError(msg) from error
    except (ValueError, RecursionError) as error:  # also of a number too long for Python, and of arrays too deep
        reason = str(error).replace("at end of document", f"at line {len(content.splitlines())}, the last one")
        msg = f"{path} is not TOML: {reason}"
        raise StreamgaugeError(msg) from error


def _key(variable: str) -> str:
    """The key in the file: kafka_port for STREAMGAUGE_KAFKA_PORT, lake_uri for LAKE_URI."""
    return variable.lower().removeprefix(_PREFIX.lower())


def _unknown(name: str, misspelt: str, names: Iterable[str], remedy: str) -> StreamgaugeError:
    from difflib import get_close_matches  # only for an error

    similar = get_close_matches(misspelt, names, n=1)
    return StreamgaugeError(f"{name} is not a setting; {f'did you mean {similar[0]}? ' if similar else ''}{remedy}")
