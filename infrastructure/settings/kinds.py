"""The kinds of values of settings: how each is read from text, and what error messages say was expected."""

import re
import shlex
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from infrastructure import durations
from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.client_options import checked_options
from infrastructure.registry.server import refuse_user_info
from infrastructure.storage.paths import OBJECT_STORES

_FLAGS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_LAST_PORT = 65535
_PREFIX = re.compile(r"[A-Za-z0-9._-]{0,200}")
"""A topic's name in Kafka has at most 249 characters; ours need at most 49."""
_LEAST_CHECKPOINT_SECONDS = 5  # Spark accepts no shorter interval
OFF = "off"
_NOT_IN_PATHS = ("Cc", "Cs")
"""Categories of characters: control characters, such as a line break, and halves of surrogate pairs, which stand for bytes that are not UTF-8."""


@dataclass(frozen=True)
class Kind:
    """A kind of values. read: text -> value; raises ValueError or KeyError for other text. expected: what a message says is expected."""

    read: Callable[[str], Any]
    expected: str


def _number_from(least: int, most: float = float("inf")) -> Callable[[str], int]:
    def read(text: str) -> int:
        number = int(text)
        if not least <= number <= most:
            raise ValueError(text)
        return number

    return read


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < float("inf"):
        raise ValueError(text)
    return seconds


def _whole_seconds(text: str) -> str:
    # Keys of result topics have whole seconds, so windows that start within the same second would share a key.
    if "." in text:
        raise ValueError(text)
    try:
        durations.seconds(text, "this setting")
    except StreamgaugeError as error:
        raise ValueError(text) from error
    return text


def _checkpoint_interval(text: str) -> str:
    if text.lower() == OFF:
        return OFF
    if durations.seconds(_whole_seconds(text), "this setting") < _LEAST_CHECKPOINT_SECONDS:
        raise ValueError(text)
    return text


def _web_address(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.port == 0:  # reading an invalid port raises ValueError
        raise ValueError(text)
    return text


def _address_without_credentials(text: str) -> str:
    if "@" in urlsplit(text).netloc:
        raise ValueError(text)
    return _web_address(text)


def _header(text: str) -> str:
    text.encode("latin-1")
    if not text.isprintable():
        raise ValueError(text)
    return text


def _text(text: str) -> str:
    text.encode()  # raises ValueError for halves of surrogate pairs, which stand for bytes that are not UTF-8
    return text


def _topic_prefix(text: str) -> str:
    if not _PREFIX.fullmatch(text):
        raise ValueError(text)
    return text


def _java_options(text: str) -> str:
    shlex.split(text)  # raises ValueError for an open quotation mark
    return _text(text)


def _path(text: str) -> Path:
    if any(unicodedata.category(character) in _NOT_IN_PATHS for character in text):
        raise ValueError(text)
    try:
        return Path(text).expanduser()
    except RuntimeError as error:  # of ~name: there is no such user
        raise ValueError(text) from error


def _folder_or_bucket(text: str) -> str:
    if "://" not in text or text.startswith("file:///"):
        return str(_path(text.removeprefix("file://")))
    return _bucket(text)


def _bucket(text: str) -> str:
    parts = urlsplit(text)
    # In abfss://container@account the @ does not follow a password.
    if parts.scheme not in OBJECT_STORES or not parts.netloc or ("@" in parts.netloc and parts.scheme != "abfss"):
        raise ValueError(text)
    return text.rstrip("/")


def _database(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"postgresql", "sqlite"} or not parts.path.strip("/") or parts.port == 0:
        raise ValueError(text)
    _path(text)
    return text


def _landing(text: str) -> str:
    place = text.removeprefix("files:")
    if place in {text, ""}:
        raise ValueError(text)
    return f"files:{_folder_or_bucket(place)}"


def _static_tables(text: str) -> str:
    names = [name for name, _, place in (entry.partition("=") for entry in text.split()) if name and place and _place(place)]
    if len(set(names)) < len(text.split()):
        raise ValueError(text)
    return text


def _place(text: str) -> object:
    return _address_without_credentials(text) if text.startswith(("http://", "https://")) else _folder_or_bucket(text)


_AN_ADDRESS = "an address that begins with http:// or https://"
_AN_OBJECT_STORE = "an object store, such as s3a://bucket/folder, abfss://..., gs://... or hdfs://namenode:8020/folder"

TEXT = Kind(_text, "text in UTF-8")
HEADER = Kind(_header, "one line of Latin-1 characters, for an HTTP header")
PATH = Kind(_path, "a path in UTF-8, without line breaks")
FLAG = Kind(lambda text: _FLAGS[text.lower()], "true or false")
COUNT = Kind(_number_from(1), "a whole number, 1 or more")
COUNT_OR_ZERO = Kind(_number_from(0), "a whole number, 0 or more")
PORT = Kind(_number_from(1, _LAST_PORT), f"a port, 1 to {_LAST_PORT}")
SECONDS = Kind(_seconds, "seconds, 0 or more")
DURATION = Kind(_whole_seconds, 'a duration in whole numbers, from "1 second" to "36525 days", such as "30 seconds" or "1 hour 30 minutes"')
CHECKPOINT_INTERVAL = Kind(_checkpoint_interval, 'off, or a duration of at least "5 seconds", such as "10 seconds"')
WEB_ADDRESS = Kind(_web_address, _AN_ADDRESS)
ADDRESS_WITHOUT_CREDENTIALS = Kind(_address_without_credentials, f"{_AN_ADDRESS}, without a name and password")
REGISTRY_ADDRESS = Kind(refuse_user_info, _AN_ADDRESS)
FOLDER = Kind(lambda text: str(_path(text)), "a folder")
FOLDER_OR_OBJECT_STORE = Kind(_folder_or_bucket, f"a folder, as a path or file:///path, or {_AN_OBJECT_STORE}")
OBJECT_STORE = Kind(_bucket, _AN_OBJECT_STORE)
JAVA_OPTIONS = Kind(_java_options, "Java options, separated by spaces, with each quotation mark closed")
TOPIC_PREFIX = Kind(_topic_prefix, "at most 200 ASCII letters, digits, '.', '_' and '-', such as team1.")
KAFKA_OPTIONS = Kind(checked_options, "Kafka's options as name=value, separated by spaces")
DATABASE = Kind(_database, "postgresql://USER:PASSWORD@HOST:PORT/DATABASE, special characters as %40, or sqlite:////FOLDER/FILE")
STATIC_TABLES = Kind(
    _static_tables, f"TABLE=PLACE, separated by spaces, each table once; a place is a path, {_AN_OBJECT_STORE}, or {_AN_ADDRESS}"
)
LANDING_FOLDER = Kind(_landing, "files: and a folder, such as files:/data/landing or files:s3a://bucket/landing")
