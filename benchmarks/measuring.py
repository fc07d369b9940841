"""What the benchmarks share: the machine's unit, a platform of their own, what a topic holds, what processes weigh and use, and a line on standard output."""

import functools
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import psutil
from confluent_kafka import Message, TopicPartition
from running import running_broker, settings_on_free_ports, start_server

from contract.topics import STREAMING_METRICS
from infrastructure.settings import Settings
from streamgauge.platform.registry import EmbeddedRegistry
from streamgauge.platform.server import EmbeddedServer

ME = [sys.executable, "-m", "streamgauge.cli"]
MIB = 2**20
ADDITIONS = 5_000_000


def say_machine() -> None:
    """What the figures were taken on."""
    memory = psutil.virtual_memory().total / 2**30
    say(f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GiB, Python {platform.python_version()}")
    load = os.getloadavg()[0]
    say(f"unit ({ADDITIONS:,} additions in a plain Python loop): {unit_seconds():.2f} CPU s; load before: {load:.1f}")


@functools.cache
def unit_seconds() -> float:
    """CPU seconds that ADDITIONS take in a plain Python loop, the least of three: figures in this unit can be compared across machines."""

    def once() -> float:
        total, started = 0, time.process_time()
        for number in range(ADDITIONS):
            total += number
        return time.process_time() - started

    return min(once() for _ in range(3))


def own_settings(home: Path) -> Settings:
    """Settings of a platform of its own in `home`, with the product's defaults."""
    return replace(settings_on_free_ports(home), driver_java_options="", real_time=Settings().real_time)


def family(pid: int) -> list[psutil.Process]:
    """The process and all that descends from it."""
    return [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]


def resident_bytes(processes: list[psutil.Process]) -> int:
    """What processes hold in memory together; a page that several share counts once."""
    return sum(process.memory_full_info().pss for process in processes)


def cpu_seconds(pid: int) -> float:
    """What the process and all that descends from it have used so far, with those of its children that have ended."""
    used = 0.0
    for process in family(pid):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            used += times.user + times.system + times.children_user + times.children_system
    return used


def messages(settings: Settings, topic: str, last: int | None = None) -> list[Message]:
    """Everything in `topic`, or the `last` of each partition."""
    consumer = settings.kafka.consumer()
    found: list[Message] = []
    try:
        starts, ends = [], {}
        for number in consumer.list_topics(topic, 2).topics[topic].partitions:
            first, end = consumer.get_watermark_offsets(TopicPartition(topic, number), 2)
            ends[number] = end
            starts.append(TopicPartition(topic, number, max(first, end - last) if last else first))
        consumer.assign(starts)
        while any(position.offset < ends[position.partition] for position in consumer.position(starts) if ends[position.partition] > 0):
            found += [message for message in consumer.consume(10_000, 0.2) if message.error() is None]
    finally:
        consumer.close()
    return found


def batches(settings: Settings) -> list[dict[str, Any]]:
    """The reports of all batches that had rows, from topic `streaming-metrics`."""
    reports = (orjson.loads(message.value() or b"{}") for message in messages(settings, STREAMING_METRICS.name))
    return [report for report in reports if report["event"] == "progress" and report["input_rows"]]


@contextmanager
def fresh_platform(*, with_registry: bool = False) -> Iterator[Settings]:
    """A broker of its own, and a schema registry if asked for, in a folder that is thrown away."""
    with tempfile.TemporaryDirectory() as home:
        settings = own_settings(Path(home))
        servers: list[EmbeddedServer] = [running_broker(settings)]
        try:
            if with_registry:
                servers.append(EmbeddedRegistry(settings))
                start_server(servers[-1])
            yield settings
        finally:
            for server in servers:
                server.stop()


def say(line: str) -> None:
    """A line on standard output, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
