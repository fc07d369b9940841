"""What is published of a batch and of a failure."""

from datetime import UTC, datetime

import pytest

from pipeline.monitoring.failures import MAX_DETAIL_CHARACTERS, MAX_ERROR_CHARACTERS, failure_of
from pipeline.monitoring.measures import lag_of, measures

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def progress(**fields):
    operators = [
        {"operatorName": "dedupe", "numRowsTotal": 7, "memoryUsedBytes": 1000, "numRowsDroppedByWatermark": 2},
        {"operatorName": "stateStoreSave", "numRowsTotal": 3, "memoryUsedBytes": 500, "numRowsDroppedByWatermark": 1},
    ]
    source = {"numInputRows": 40, "endOffset": {"a-b": {"0": 10, "1": 20}}, "latestOffset": {"a-b": {"0": 15, "1": 20}}}
    return {
        "batchId": 5,
        "timestamp": "2026-11-21T11:59:59.500Z",
        "batchDuration": 400,
        "durationMs": {"addBatch": 300, "triggerExecution": 400},
        "inputRowsPerSecond": 80.0,
        "processedRowsPerSecond": 100.0,
        "eventTime": {"watermark": "2026-11-21T11:50:00.000Z"},
        "stateOperators": operators,
        "sources": [source],
        "sink": {"numOutputRows": 6},
        **fields,
    }


def test_a_batch_is_measured():
    assert measures(progress(), NOON, {"a-b-1": 21}) == {
        "batch_id": 5,
        "batch_started_at": "2026-11-21T11:59:59.500Z",
        "input_rows": 40,
        "input_rows_per_second": 80.0,
        "processed_rows_per_second": 100.0,
        "batch_ms": 400,
        "duration_ms": {"addBatch": 300, "triggerExecution": 400},
        "watermark": "2026-11-21T11:50:00.000Z",
        "watermark_age_ms": 600_000,
        "state_rows": 10,
        "state_bytes": 1500,
        "state_operators": [
            {"operator": "dedupe", "rows": 7, "bytes": 1000, "timers": None},
            {"operator": "stateStoreSave", "rows": 3, "bytes": 500, "timers": None},
        ],
        "rows_dropped_by_watermark": 3,
        "source_lag": {"a-b-0": 5, "a-b-1": 1},
        "source_offsets": {"a-b-0": 10, "a-b-1": 20},
        "sink_rows": 6,
    }


def test_in_real_time_mode_a_batch_has_no_duration_and_no_rate_of_its_own():
    measured = measures(progress(), NOON, {}, in_real_time=True)
    assert (measured["batch_ms"], measured["processed_rows_per_second"], measured["input_rows_per_second"]) == (None, None, 80.0)


@pytest.mark.parametrize(
    ("variables", "timers"),
    [({"numValueStateVars": 2}, 5), ({"numListStateVars": 2}, None), ({"numValueStateVars": 2, "numMapStateWithTTLVars": 2}, None)],
)
def test_timers_are_counted_where_spark_keeps_nothing_else_beside_them(variables, timers):
    told = {"rocksdbNumInternalColumnFamilies": 4, "rocksdbNumInternalColFamiliesKeys": 10, "numListStateVars": 0} | variables
    operator = {"operatorName": "processor", "numRowsTotal": 7, "memoryUsedBytes": 9, "numRowsDroppedByWatermark": 0, "customMetrics": told}
    (found,) = measures(progress(stateOperators=[operator]), NOON, {})["state_operators"]
    assert found == {"operator": "processor", "rows": 7, "bytes": 9, "timers": timers}


def test_what_spark_does_not_know_is_none():
    measured = measures(progress(eventTime={"watermark": "1970-01-01T00:00:00.000Z"}, sink={"numOutputRows": -1}), NOON, {})
    assert (measured["watermark"], measured["watermark_age_ms"], measured["sink_rows"]) == (None, None, None)
    measured = measures(progress(eventTime={}), NOON, {})
    assert (measured["watermark"], measured["watermark_age_ms"]) == (None, None)


def test_what_arrived_while_the_batch_ran_is_lag():
    source = {"endOffset": {"a": {"0": 10}}, "latestOffset": {"a": {"0": 10}}}
    assert lag_of([source], {}) == {"a-0": 0}
    assert lag_of([source], {"a-0": 13, "b-0": 99}) == {"a-0": 3}
    assert lag_of([source], {"a-0": 4}) == {"a-0": 0}, "an end that was heard of before the batch"


def test_a_partition_not_read_yet_lags_by_all_it_holds_and_other_sources_by_nothing():
    assert lag_of([{"endOffset": {"a": {"0": 10}}, "latestOffset": {"a": {"0": 10, "1": 4}}}], {}) == {"a-0": 0, "a-1": 4}
    assert lag_of([{"endOffset": None, "latestOffset": {"a": {"0": 3}}}], {}) == {"a-0": 3}
    assert lag_of([{"endOffset": 7, "latestOffset": None}], {}) == {}


def test_a_failure_is_a_line_and_a_text_without_stack_frames():
    trace = "\n".join(
        [
            "org.apache.spark.SparkException: Job aborted: it failed",
            "\tat org.apache.spark.Thing.run(Thing.scala:3)",
            "Caused by: java.lang.ArithmeticException: / by zero",
            "\tat Thing.divide(Thing.scala:9)",
            "\t... 19 more",
        ]
    )
    failure = failure_of(trace)
    assert failure.error == "org.apache.spark.SparkException: Job aborted: it failed"
    assert failure.detail == "org.apache.spark.SparkException: Job aborted: it failed\nCaused by: java.lang.ArithmeticException: / by zero"
    assert failure_of("\n").error == "no reason given"


def test_the_error_of_a_failure_in_python_is_that_of_python():
    trace = "\n".join(
        [
            "[RUNNER_FAILED] It returned -2. Cause: Traceback (most recent call last):",
            '  File "worker.py", line 63, in main',
            "    import pyarrow",
            "ModuleNotFoundError: No module named 'pyarrow'",
            " SQLSTATE: XXKST",
            "\tat org.Thing.run(Thing.scala:3)",
        ]
    )
    assert failure_of(trace).error == "[RUNNER_FAILED] It returned -2. Cause: ModuleNotFoundError: No module named 'pyarrow'"


def test_a_failure_is_bounded():
    failure = failure_of("\n".join("x" * 1000 for _ in range(1000)))
    assert len(failure.error) == MAX_ERROR_CHARACTERS
    assert len(failure.detail) == MAX_DETAIL_CHARACTERS
    assert failure.detail.endswith(" ...")


def test_secrets_are_left_out_of_a_failure():
    failure = failure_of(
        'no login at https://anna:hunter2@registry:8081/x: sasl.jaas.config=Plain username="anna" password="hunter3"; '
        "kafka.ssl.key.password -> hunter4, api_key: hunter5"
    )
    assert "hunter" not in failure.detail + failure.error
    assert "registry:8081/x" in failure.error
