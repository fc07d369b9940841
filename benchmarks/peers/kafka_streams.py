"""How NestStreams.java is compiled and started. nest_quix.py takes the same arguments."""

import subprocess
from pathlib import Path

from confluent_kafka.admin import NewTopic

from contract.domains.nest import NEST_LOGS
from contract.java import jars
from contract.java.runtime import java_home
from contract.settings import Settings
from contract.storage.data_files import data_file


def compiled(settings: Settings, folder: Path) -> list[str]:
    """Compiles NestStreams.java into `folder`; returns the command that runs it, without its arguments."""
    libraries = jars.fetch("peers", settings)
    (compiler,) = (path for path in libraries if path.name.startswith("ecj-"))
    java, class_path = str(java_home(settings) / "bin" / "java"), jars.class_path([folder, *libraries])
    source = Path(__file__).with_name("NestStreams.java")
    subprocess.run([java, "-jar", compiler, "-17", "-nowarn", "-cp", class_path, "-d", folder, source], check=True)
    return [java, f"-Xmx{settings.driver_memory}", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", class_path, "NestStreams"]


def arguments(settings: Settings, result: str, grace_seconds: float) -> list[str]:
    """What the program is told: to write into topic `result`, which is created, and to call itself by that name."""
    admin = settings.kafka.admin()  # in a variable, because a client that is garbage-collected never answers
    admin.create_topics([NewTopic(result, 1, config={"cleanup.policy": "compact"})])[result].result(30)
    folder, locations = settings.home / result, data_file("device_locations.csv")
    return [str(settings.kafka), NEST_LOGS.name, result, str(folder), str(round(grace_seconds)), str(locations)]
