"""Deletes the contents of STREAMGAUGE_HOME and nothing else: topics, schemas, checkpoints, tables, logs."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from contract.checkpoints import names as checkpoint_names
from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings
from infrastructure.storage.removal import bytes_on_disk, remove
from infrastructure.text import size_text

OURS = {
    "kafka": "the embedded broker: all topics",
    "registry": "the embedded schema registry: all schemas",
    "checkpoints": "the checkpoints of the queries",
    "lake": "archives and other tables",
    "database": "the embedded database of result tables",
    "audit": "what the continuous audit knows",
    "logs": "logs",
    "producers": "the position in the live stream",
    "tmp": "temporary files",
    "chaos": "failed rounds of `make chaos`",
    "workshop": "data of the checks of the labs",
    "demo.lock": "the lock of the demo",
    "notify.json": "the alerts that `notify` has sent",
    "notify.lock": "the lock of `notify`",
    "replay.lock": "the lock of a replay of dead letters",
    "demo.pid": "the process of the demo",
    "warehouse": "tables that your own Spark programs have made",
    "spark-master": "the recovery data of a Spark master",
    ".DS_Store": "what macOS writes when the folder is looked at",
}
"""Everything that Streamgauge writes to STREAMGAUGE_HOME, with its meaning."""


@dataclass(frozen=True)
class Entry:
    """An entry of STREAMGAUGE_HOME to delete."""

    path: Path
    meaning: str
    size_bytes: int

    def __str__(self) -> str:
        if self.path.is_symlink():
            return f"{self.path}  {self.meaning}: only the link; its target {self.path.readlink()} stays"
        return f"{self.path}  {self.meaning}, {size_text(self.size_bytes)}"


def check(settings: Settings) -> None:
    """Raises StreamgaugeError when STREAMGAUGE_HOME does not look like one, or when part of it is running."""
    home = settings.home.resolve()
    if not home.exists():
        return
    if not home.is_dir():
        msg = f"STREAMGAUGE_HOME={settings.home} is not a folder; correct it"
        raise StreamgaugeError(msg)
    for place in (Path.home(), Path.cwd()):
        if place.resolve().is_relative_to(home):
            msg = f"STREAMGAUGE_HOME={settings.home} {'is' if place.resolve() == home else 'holds'} {place}; it will not be deleted: name the folder that Streamgauge created"
            raise StreamgaugeError(msg)
    strangers = sorted(path.name for path in home.iterdir() if path.name not in OURS and not _holds_cache(path, settings))
    if strangers:
        shown = ", ".join(strangers[:5]) + (", ..." if len(strangers) > 5 else "")  # noqa: PLR2004
        msg = f"STREAMGAUGE_HOME={settings.home} contains files that Streamgauge did not create: {shown}; expected only {', '.join(OURS)}. Move it away, or correct STREAMGAUGE_HOME"
        raise StreamgaugeError(msg)
    _refuse_while_in_use(settings)


def entries(settings: Settings) -> list[Entry]:
    home = settings.home.resolve()
    return [Entry(home / name, meaning, bytes_on_disk(home / name)) for name, meaning in OURS.items() if os.path.lexists(home / name)]


def delete(to_delete: list[Entry], settings: Settings) -> None:
    """Deletes the entries, and STREAMGAUGE_HOME itself if it is then empty. Raises StreamgaugeError for what cannot be deleted."""
    _refuse_while_in_use(settings)
    for entry in to_delete:
        remove(entry.path)
    home = settings.home
    if home.is_dir() and not home.is_symlink() and not any(home.iterdir()):
        home.rmdir()


def staying(settings: Settings, *, topics_go: bool) -> Iterator[str]:
    """A line on each thing outside of STREAMGAUGE_HOME that stays. topics_go: whether those of a Kafka of one's own are deleted, too."""
    if settings.kafka_bootstrap_servers and not topics_go:
        yield f"the topics in your own Kafka at {settings.kafka_bootstrap_servers} stay"
    if settings.lake_uri and settings.lake.exists():
        yield f"the tables in {settings.lake} stay: delete them too before queries run again, or their rows come a second time"
    if settings.checkpoint_uri and checkpoint_names.checkpoints(settings):
        yield f"the checkpoints in {settings.checkpoints} stay: `streamgauge reset` deletes those of a query"
    if settings.cache.exists():
        yield f"the downloads in {settings.cache} stay"


def _holds_cache(path: Path, settings: Settings) -> bool:
    return settings.cache.absolute().is_relative_to(settings.home.absolute() / path.name)


def _refuse_while_in_use(settings: Settings) -> None:
    for name, driver in checkpoint_names.drivers(settings).items():
        msg = f"{name} is in use (its Spark driver is pid {driver.pid}); stop that `streamgauge run`, then clean"
        raise StreamgaugeError(msg)
    for process, file in _users(settings.home.resolve()):
        msg = f"{process.name()} (pid {process.pid}) has {file} open; stop it (`streamgauge down` for Kafka and the registry), then clean"
        raise StreamgaugeError(msg)


def _users(home: Path) -> Iterator[tuple[psutil.Process, str]]:
    """The processes that have a file in `home` open, as far as this user may see, each with that file."""
    inside = f"{home}{os.sep}"
    for process in psutil.process_iter():
        if process.pid == os.getpid():
            continue
        try:
            file = next((file.path for file in process.open_files() if file.path.startswith(inside)), None)
        except (psutil.Error, OSError):
            continue
        if file is not None:
            yield process, file
