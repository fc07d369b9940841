"""Records that a real producer sends in a transaction."""

from confluent_kafka import Producer

ANSWER_SECONDS = 60


def begun(settings, *values, topic="nest-logs", name="test"):
    """A producer that has sent the values to partition 0 in a transaction, which is still open."""
    producer = Producer({"bootstrap.servers": settings.bootstrap_servers, "transactional.id": name})
    producer.init_transactions(ANSWER_SECONDS)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, b"key", partition=0)
    assert producer.flush(ANSWER_SECONDS) == 0
    return producer


def in_a_transaction(settings, *values, abort=False, **more):
    producer = begun(settings, *values, **more)
    producer.abort_transaction(ANSWER_SECONDS) if abort else producer.commit_transaction(ANSWER_SECONDS)
