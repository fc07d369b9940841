"""Records of transactions, by a real transactional producer: those of aborted and open ones count nowhere."""

import verifying
from confluent_kafka import Producer
from plain import START, one_camera, results

from contract.kafka.topic_ends import TopicEnds

ANSWER_SECONDS = 60
STATS, ARCHIVE, LETTERS = QUERIES = ("nest-camera-stats", "nest-archive", "nest-dead-letters")


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


def test_records_of_aborted_transactions_count_nowhere_and_nothing_waits_for_them(fresh):
    def cameras(*devices):
        return [one_camera(device, START) for device in devices]

    in_a_transaction(fresh, *cameras("cam-a", "cam-b"), b"no JSON", abort=True)
    in_a_transaction(fresh, *cameras("cam-c"), b"no JSON")
    in_a_transaction(fresh, *cameras("cam-d", "cam-e"), abort=True)
    verifying.run_once(fresh, *QUERIES)
    assert sum(results(fresh).values()) == 1
    ends = TopicEnds(fresh.kafka)
    assert ends.ask(["nest-logs-0"])
    assert ends.ends == {"nest-logs-0": 10}, "seven records and the marker of each transaction"

    producer = begun(fresh, *cameras("cam-f", "cam-g"))
    verifying.run_once(fresh, *QUERIES)
    assert sum(results(fresh).values()) == 1, "the transaction is open"
    producer.commit_transaction(ANSWER_SECONDS)
    verifying.run_once(fresh, *QUERIES)
    assert sum(results(fresh).values()) == 3
    found = {name: (outcome.verdict, outcome.rows.equal) for name, outcome in verifying.verified(fresh, *QUERIES).items()}
    assert found == {STATS: ("right", 1), ARCHIVE: ("right", 3), LETTERS: ("right", 1)}
