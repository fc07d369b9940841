"""`verify` in a test's own process: runs, verdicts, and a record of somebody who should not have written it."""

from dataclasses import replace

from confluent_kafka import Producer
from running import shared_spark

from audit.commands import verdicts_of
from pipeline.catalog import chosen
from pipeline.running.runner import Runner


def run_once(settings, *names, mode=None, **changes):
    """Runs these queries alone: without the dead letters that `streamgauge run` adds."""
    settings = replace(settings, **changes)
    queries = [query for query in chosen(names, settings) if not names or query.name in names]
    Runner(shared_spark(), settings, once=True).run([query.in_mode(mode) if mode else query for query in queries])


def verified(settings, *names):
    """The verdict on the query of that name, or those on several or all by name."""
    verdicts = {verdict.query: verdict for verdict in verdicts_of(names, settings)}
    return verdicts[names[0]] if len(names) == 1 else verdicts


def write(settings, topic, key, value, **more):
    producer = Producer({"bootstrap.servers": settings.bootstrap_servers})
    producer.produce(topic, value, key, **more)
    assert producer.flush(30) == 0


def differences(outcome, kind):
    return {difference.where: (difference.expected, difference.found) for difference in outcome.differences if difference.kind == kind}
