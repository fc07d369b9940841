"""The checks of containers' health that ask Kafka."""

import time

from plain import write_topic

from streamgauge.operations import health


def test_a_topic_is_well_while_records_come(fresh):
    assert health.problem(["topic", "nest-logs"], fresh) == "nothing has come to nest-logs yet"
    write_topic(fresh, "nest-logs", [b"{}"])
    assert health.problem(["topic", "nest-logs"], fresh) is None
    assert health.topic_problem(fresh, "nest-logs", time.time() + 300).startswith("nothing has come to nest-logs for 30")


def test_no_query_has_run(fresh):
    assert health.problem(["queries"], fresh) == "no query has started yet"
