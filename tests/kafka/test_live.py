"""The live line of the demo, on a Kafka whose topics have other numbers of partitions than those that Streamgauge creates."""

import orjson
from confluent_kafka.admin import NewTopic
from plain import write_topic
from running import eventually

from contract.create_topics import create_topics
from streamgauge.demo.live import LiveFigures

PROGRESS = {
    "event": "progress",
    "query": "nest-camera-stats",
    "time": "2026-01-01T00:00:00.000Z",
    "source_lag": {"nest-logs-0": 3},
    "batch_ms": 5,
    "rows_dropped_by_watermark": 0,
    "sink_rows": None,
    "duration_ms": {},
    "watermark_age_ms": None,
    "state_bytes": 0,
    "input_rows_per_second": 1.0,
    "processed_rows_per_second": 1.0,
}


def create_anew(settings, **partitions):
    """Deletes the topics and creates each with so many partitions."""
    admin = settings.kafka.admin()
    wanted = {name.replace("_", "-"): count for name, count in partitions.items()}
    for deleted in admin.delete_topics(list(wanted)).values():
        deleted.result()
    eventually(lambda: not wanted.keys() & admin.list_topics().topics.keys(), f"{', '.join(wanted)} to be deleted")
    for created in admin.create_topics([NewTopic(name, num_partitions=count) for name, count in wanted.items()]).values():
        created.result()


def answer_of(figures):
    """The line; false while Kafka does not answer."""
    figures.ask()
    return not figures.is_away and figures.line()


def test_records_are_counted_in_fewer_and_in_more_partitions_than_the_contract_has(fresh):
    create_anew(fresh, nest_logs=1, nyc_taxi=5, streaming_metrics=2)
    figures = LiveFigures(fresh)

    def line():
        figures.ask()
        return figures.line()

    eventually(lambda: line() == "events in 0 | Spark is starting", "a first line")
    write_topic(fresh, "nest-logs", [b"{}"] * 20, partitions=1)
    write_topic(fresh, "nyc-taxi", [b"{}"] * 30, partitions=5)
    assert line() == "events in 50 | Spark is starting"
    write_topic(fresh, "nest-camera-stats", [b"{}"] * 2, key=b"{}")
    assert line() == "events in 50 | rows out 2", "in real-time mode, rows come before the first batch is complete"

    def line_after_a_batch_in_each_partition():
        write_topic(fresh, "streaming-metrics", [orjson.dumps(PROGRESS)] * 2, partitions=2)
        return line()

    expected = "events in 50 | rows out 2 | lag 3 | longest batch 5 ms | too late 0 | queries 1"
    eventually(lambda: line_after_a_batch_in_each_partition() == expected, f"the line {expected!r}")


def test_a_topic_that_the_broker_does_not_list_for_a_moment_counts_as_before(fresh):
    figures, admin = LiveFigures(fresh), fresh.kafka.admin()

    eventually(lambda: answer_of(figures), "a first answer")
    write_topic(fresh, "nest-logs", [b"{}"] * 20)
    assert eventually(lambda: answer_of(figures), "an answer") == "events in 20 | Spark is starting"
    admin.delete_topics(["nest-logs"])["nest-logs"].result()
    try:
        eventually(lambda: "nest-logs" not in admin.list_topics().topics, "the broker not to list the topic")
        assert eventually(lambda: answer_of(figures), "an answer") == "events in 20 | Spark is starting"
    finally:
        create_topics(fresh.kafka)


def test_the_records_of_a_topic_that_is_created_again_are_counted_with_those_before(fresh):
    figures = LiveFigures(fresh)
    eventually(lambda: answer_of(figures), "a first answer")
    write_topic(fresh, "nest-logs", [b"{}"] * 20, to=0)
    assert eventually(lambda: answer_of(figures), "an answer") == "events in 20 | Spark is starting"
    create_anew(fresh, nest_logs=1)
    write_topic(fresh, "nest-logs", [b"{}"] * 25, to=0)
    eventually(lambda: answer_of(figures) == "events in 45 | Spark is starting", "the new records to be counted")


def test_a_query_that_has_ended_no_longer_counts_and_its_late_rows_still_do(fresh):
    figures = LiveFigures(fresh)
    others = {"query": "taxi-borough-stats", "source_lag": {"nyc-taxi-0": 70}, "rows_dropped_by_watermark": 4}

    def line(*records):
        write_topic(fresh, "streaming-metrics", map(orjson.dumps, records))
        figures.ask()
        return figures.line().partition("| ")[2].partition(" | ")[2]

    eventually(lambda: line(PROGRESS) == "lag 3 | longest batch 5 ms | too late 0 | queries 1", "a line of the first query")
    eventually(lambda: line(PROGRESS | others).startswith("lag 70 "), "the lag of the other query")
    ended = {"event": "terminated", "query": "taxi-borough-stats", "time": PROGRESS["time"]}
    eventually(lambda: line(ended).startswith("lag 3 "), "the lag of the first query alone")
    late, queries = line().split(" | ")[2:]
    assert int(late.removeprefix("too late ")) >= 4
    assert queries == "queries 1"


def test_records_of_another_program_are_left_out(fresh):
    figures = LiveFigures(fresh)
    without_late = {name: value for name, value in PROGRESS.items() if name != "rows_dropped_by_watermark"}
    foreign = [{}, {"event": "progress"}, PROGRESS | {"source_lag": None}, PROGRESS | {"batch_ms": "5"}, without_late | {"batch_ms": 9}]

    def line():
        write_topic(
            fresh, "streaming-metrics", [b"rubbish", b"[]", *map(orjson.dumps, foreign), orjson.dumps(PROGRESS | {"query": "last"})]
        )
        figures.ask()
        return figures.line()

    eventually(lambda: line().endswith("longest batch 5 ms | too late 0 | queries 1"), "a line of the one record that is right")
