"""How far queries in real-time mode have read, from what Kafka's clients in the driver say."""

import pytest

from pipeline.monitoring.consumers import lags_of, read_to

CLIENT = "consumer-{}-0f3c9a52-6a0b-4c1e-9d7f-2b8f6f0a1c3d--1234-executor-{}"
FETCHES = "kafka.consumer:type=consumer-fetch-manager-metrics,client-id={}"


def lags(*told, partitions=("a.b-0", "a.b-1")):
    """told: (query, partition, lag, seconds since it asked for records; None of a consumer that was closed)."""
    values = {}
    for number, (query, partition, lag, seconds) in enumerate(told):
        client = CLIENT.format(query, number)
        values[f"{FETCHES.format(client)},topic=a_b,partition={partition}", "records-lag"] = lag
        values[f"kafka.consumer:type=consumer-metrics,client-id={client}", "last-poll-seconds-ago"] = seconds
    names = [name for name, attribute in values if attribute == "records-lag"]
    text = f"[{', '.join([*names, FETCHES.format(CLIENT.format('nest-archive', 9))])}]"
    return lags_of(text, lambda name, attribute: values[name, attribute], partitions)


def test_each_query_has_the_lags_of_its_own_consumers():
    told = [("nest-camera-stats", 0, 7.0, 0.0), ("nest-camera-stats", 1, 0.0, 1.0), ("nest-dead-letters", 0, 2.0, 0.0)]
    assert lags(*told) == {"nest-camera-stats": {"a.b-0": 7, "a.b-1": 0}, "nest-dead-letters": {"a.b-0": 2}}


@pytest.mark.parametrize(("lag", "seconds"), [(float("nan"), 0.0), (7.0, 3.0), (7.0, -1.0), (7.0, None), (None, 0.0)])
def test_a_consumer_that_has_read_nothing_does_not_read_now_or_was_closed_says_nothing(lag, seconds):
    assert lags(("counts", 0, lag, seconds), ("counts", 1, 4.0, 0.0)) == {"counts": {"a.b-1": 4}}


def test_a_partition_of_another_source_is_left_out():
    assert lags(("counts", 0, 7.0, 0.0), partitions=["c-0"]) == {}


def test_the_offset_is_as_far_from_the_end_as_the_lag_and_unknown_without_an_end():
    assert read_to({"a-0": 3, "a-1": 0, "a-2": 1}, {"a-0": 10, "a-1": 4}) == {"a-0": 7, "a-1": 4}
