"""Records of transactions, by a real transactional producer: those of aborted and open ones count nowhere."""

import verifying
from plain import START, one_camera, results
from transactions import ANSWER_SECONDS, begun, in_a_transaction

from infrastructure.kafka.topic_ends import TopicEnds

STATS, ARCHIVE, LETTERS = QUERIES = ("nest-camera-stats", "nest-archive", "nest-dead-letters")


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
