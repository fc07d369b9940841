"""The programs that do the job of `nest-camera-stats`, how they are installed and what they are told."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from confluent_kafka.admin import NewTopic
from running import environment

from benchmarks.measuring import ME
from contract.domains.nest import NEST_CAMERA_STATS, NEST_LOGS
from contract.topics import DEAD_LETTERS
from infrastructure.java import jars
from infrastructure.java.runtime import java_home
from infrastructure.settings import Settings
from infrastructure.storage.data_files import data_file

HERE = Path(__file__).parent
UV = ".uv/bin/uv"


@dataclass(frozen=True)
class Engine:
    """A program that does the job, and the topics that it writes."""

    name: str
    command: list[str]
    environment: dict[str, str]
    result: str
    dead_letters: str


def installed(settings: Settings, folder: Path) -> dict[str, list[str]]:
    """The command of each engine but Streamgauge, without its arguments. `folder` is for what is compiled."""
    return {
        "Kafka Streams": compiled(settings, folder),
        "Quix Streams": script("nest_quix.py"),
        "Bytewax": script("nest_bytewax.py"),
        "Python loop": [sys.executable, str(HERE / "plain_loop.py")],
    }


def compiled(settings: Settings, folder: Path) -> list[str]:
    """Compiles NestStreams.java into `folder`; returns the command that runs it, without its arguments."""
    libraries = jars.fetch("peers", settings)
    (compiler,) = (path for path in libraries if path.name.startswith("ecj-"))
    java, class_path = str(java_home(settings) / "bin" / "java"), jars.class_path([folder, *libraries])
    source = HERE / "NestStreams.java"
    subprocess.run([java, "-jar", compiler, "-17", "-nowarn", "-cp", class_path, "-d", folder, source], check=True)
    return [java, f"-Xmx{settings.driver_memory}", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", class_path, "NestStreams"]


def script(name: str) -> list[str]:
    """Installs what the script needs; returns the command that runs it, without its arguments."""
    options = ("--quiet", "--frozen", "--script", str(HERE / name))
    subprocess.run([UV, "sync", *options], check=True)
    return [UV, "run", *options]


def peers(settings: Settings, commands: Mapping[str, list[str]], run: str, grace_seconds: float) -> Iterator[Engine]:
    """The engines but Streamgauge, which run until they are ended, each with an application, a state folder and topics of its own."""
    for name in commands:
        yield peer(settings, commands, name, run, grace_seconds)


def peer(settings: Settings, commands: Mapping[str, list[str]], name: str, run: str, grace_seconds: float, *options: str) -> Engine:
    """The engine of that name. run: tells it from itself in another run."""
    result = f"{name.lower().replace(' ', '-')}-{run}"
    command = [*commands[name], *arguments(settings, result, grace_seconds), *options]
    return Engine(" ".join((name, *options)), command, environment(settings), result, f"{result}-dead-letters")


def arguments(settings: Settings, result: str, grace_seconds: float) -> list[str]:
    """What a program is told: to write into topic `result`, which is created, and to call itself by that name."""
    admin = settings.kafka.admin()  # in a variable, because a client that is garbage-collected never answers
    topics = [NewTopic(result, 1, config={"cleanup.policy": "compact"}), NewTopic(f"{result}-dead-letters", 1)]
    for created in admin.create_topics(topics).values():
        created.result(30)
    folder, locations = settings.home / result, data_file("device_locations.csv")
    return [str(settings.kafka), NEST_LOGS.name, result, str(folder), str(round(grace_seconds)), str(locations)]


def streamgauge(settings: Settings, run: str, *options: str) -> Engine:
    """`streamgauge run nest-camera-stats` with checkpoints of its own, so from the earliest document."""
    own = replace(settings, home=settings.home / f"streamgauge-{run}")
    return Engine("Streamgauge", [*ME, "run", "nest-camera-stats", *options], environment(own), NEST_CAMERA_STATS.name, DEAD_LETTERS.name)
