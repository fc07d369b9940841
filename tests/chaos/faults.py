"""What each kind of fault does to a system."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache

import odd_values
import psutil
from confluent_kafka.admin import NewPartitions

from chaos import disk
from chaos.plan import Fault, Kind
from chaos.system import System, frozen
from contract.domains import DOMAINS
from contract.domains.nest import NEST_LOGS
from contract.domains.taxi import NYC_TAXI
from contract.domains.wikimedia import WIKIMEDIA
from infrastructure.kafka.cluster import close_producer
from infrastructure.kafka.recent_records import last_records
from infrastructure.kafka.record_clock import CLOCK_MS, clock_header
from infrastructure.kafka.record_headers import headers_of
from infrastructure.kafka.topic_ends import partitions_by_topic
from infrastructure.kafka.writing import Sent, write_records

SOURCES = [topic for domain in DOMAINS for topic in domain.sources]
_ODD = {NEST_LOGS.name: odd_values.documents, NYC_TAXI.name: odd_values.trips, WIKIMEDIA.name: odd_values.changes}
_RECORDS = 40
_MOST_PARTITIONS = 8
_DAY_MS = round(timedelta(days=1).total_seconds() * 1000)
ANSWER_SECONDS = 60


def possible(*, has_disk: bool) -> list[Kind]:
    """The kinds that can happen on this machine. has_disk: whether the system has a disk of its own."""
    return [kind for kind in Kind if not ((kind is Kind.FULL_DISK and not has_disk) or (kind is Kind.SLOW_DISK and not disk.can_slow()))]


def inflict(fault: Fault, system: System, rng: random.Random) -> None:
    """Lets a fault happen, and waits until it is over. Raises StreamgaugeError when something has ended by itself."""
    if fault.seconds:
        with _LASTING[fault.kind](system):
            time.sleep(fault.seconds)
        if fault.kind is Kind.FULL_DISK:
            system.revive()
    elif fault.kind in _EVENTS:
        _EVENTS[fault.kind](system, rng)


def _kill_producer(system: System, rng: random.Random) -> None:
    system.kill_producer(rng.choice(sorted(system.producers)))


def _send_odd_values(system: System, rng: random.Random) -> None:
    for topic in SOURCES:
        # By the clock of the simulation, so that none of them is ahead of all events to come.
        headers = [header for record in last_records(system.settings.kafka, topic.name, 1) for header in headers_of(record)]
        clock = max((header for header in headers if header[0] == CLOCK_MS), default=clock_header(0))
        values = rng.sample(_odd_values(topic.name), _RECORDS)
        write_records(system.settings.kafka, topic.name, (Sent(b"%d" % number, value, [clock]) for number, value in enumerate(values)))


@cache
def _odd_values(topic: str) -> list[bytes | None]:
    return odd_values.made(_ODD[topic])


def _send_again(system: System, rng: random.Random) -> None:
    kafka = system.settings.kafka
    for topic in SOURCES:
        producer = kafka.producer({"acks": "all"})
        try:
            for record in last_records(kafka, topic.name, _RECORDS // topic.partitions):
                time_ms = record.timestamp()[1] + rng.choice((-_DAY_MS, _DAY_MS))
                producer.produce(topic.name, record.value(), record.key(), headers=headers_of(record), timestamp=time_ms)
            unsent = producer.flush(ANSWER_SECONDS)
            assert not unsent, f"{unsent} records were not sent again"
        finally:
            close_producer(producer, 0)


def _add_partition(system: System, rng: random.Random) -> None:
    topic, kafka = rng.choice(SOURCES).name, system.settings.kafka
    if (count := len(partitions_by_topic(kafka)[topic])) < _MOST_PARTITIONS:
        admin = kafka.admin()  # in a variable: without its client, the request would end
        admin.create_partitions([NewPartitions(topic, count + 1)])[topic].result(ANSWER_SECONDS)


_EVENTS: dict[Kind, Callable[[System, random.Random], None]] = {
    Kind.KILL_PYTHON: lambda system, _: system.kill_pipeline("python"),
    Kind.KILL_JVM: lambda system, _: system.kill_pipeline("java"),
    Kind.KILL_KAFKA: lambda system, _: system.kill_server(system.kafka),
    Kind.TEAR_SEGMENTS: lambda system, _: system.kill_server(system.kafka, is_torn=True),
    Kind.KILL_REGISTRY: lambda system, _: system.kill_server(system.registry),
    Kind.KILL_PRODUCER: _kill_producer,
    Kind.KILL_ALL: lambda system, _: system.kill_all(),
    Kind.ODD_VALUES: _send_odd_values,
    Kind.AGAIN: _send_again,
    Kind.ADD_PARTITION: _add_partition,
}


@contextmanager
def _cut_kafka(system: System) -> Iterator[None]:
    system.to_kafka.cut()
    yield
    system.to_kafka.mend()


@contextmanager
def _cut_registry(system: System) -> Iterator[None]:
    system.to_registry.cut()
    yield
    system.to_registry.mend()


_LASTING = {
    Kind.FREEZE_PIPELINE: lambda system: frozen([psutil.Process(system.pipeline.pid)]),
    Kind.FREEZE_KAFKA: lambda system: frozen([one for one in [system.kafka.process] if one]),
    Kind.PAUSE: lambda system: frozen([psutil.Process(one.pid) for one in system.producers.values() if one.is_running]),
    Kind.CUT_KAFKA: _cut_kafka,
    Kind.CUT_REGISTRY: _cut_registry,
    Kind.FULL_DISK: lambda system: disk.full(system.settings.home),
    Kind.SLOW_DISK: lambda system: disk.slow(system.driver.pid),
}
