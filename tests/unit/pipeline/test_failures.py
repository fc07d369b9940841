"""What a person is told of a query's failure, and its remedy."""

import pytest

from contract.checkpoints.names import CheckpointName
from infrastructure.settings import Settings
from pipeline.monitoring.failures import Remedy, diagnosis, failure_of


@pytest.mark.parametrize(
    ("text", "what", "remedy"),
    [
        (
            "Some data may have been lost because they are not available in Kafka any more; ... failOnDataLoss",
            "STREAMGAUGE_FAIL_ON_DATA_LOSS=false",
            Remedy.PERSON,
        ),
        ("[STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE] Provided value schema does not match", "version", Remedy.PERSON),
        ("java.io.IOException: No space left on device", "space", Remedy.RESTART),
        (
            "[KAFKA_DATA_LOSS.PARTITION_OFFSET_CHANGED] Some data may have been lost",
            "removed by retention, or lost by a broker. Two ways out",
            Remedy.PERSON,
        ),
        (
            "org.apache.kafka.clients.consumer.OffsetOutOfRangeException: Fetch position FetchPosition{offset=21}",
            "Kafka does not have the offset",
            Remedy.RESTART,
        ),
        (
            "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server does not host",
            "`streamgauge up` creates",
            Remedy.RESTART,
        ),
        (
            "An exception was raised by the Python Proxy\n: [CANNOT_LOAD_STATE_STORE.CANNOT_READ] Error reading state/0/0/2.delta",
            "checkpoint is damaged: [CANNOT_LOAD_STATE_STORE.CANNOT_READ] Error reading state/0/0/2.delta; restore",
            Remedy.RESTART,
        ),
        ("Checksum error: file:/home/checkpoints/q-v1-update/offsets/0 at 0", "checkpoint", Remedy.RESTART),
        ("org.apache.kafka.common.errors.TimeoutException: Timeout of 20000ms", "Kafka", Remedy.RESTART_AT_ONCE),
        (
            "Connection to streaming shuffle writer 22 closed before termination; the writer task likely failed.",
            "a task failed",
            Remedy.RESTART_AT_ONCE,
        ),
        ("Python worker failed to connect back. SQLSTATE: XXKST", "a Python process", Remedy.RESTART_AT_ONCE),
        ("java.lang.RuntimeException: boom\n\tat org.apache.spark.X", "java.lang.RuntimeException: boom", Remedy.RESTART),
        (
            "org.apache.kafka.common.errors.InvalidTimestampException: Timestamp 1795949439000 of message with offset 0 is out of range.",
            "this machine's clock is further ahead of the broker's",
            Remedy.RESTART,
        ),
        ("", "", Remedy.RESTART),
    ],
)
def test_a_failure_says_what_was_found_and_what_to_do(tmp_path, text, what, remedy):
    found = diagnosis(text, CheckpointName("q", 1, "update").place(Settings(home=tmp_path)), Settings(home=tmp_path))
    assert what in found.cause
    assert found.remedy is remedy
    assert "\n" not in found.cause


def test_a_value_that_only_names_secrets_is_read_once_and_not_once_for_each_name():
    assert failure_of("token" * 100_000).error.startswith("tokentoken")


def test_the_value_of_a_secret_with_a_long_name_is_hidden():
    shown = failure_of(f"the-password{'_of_somebody' * 10}=s3cret, and more").error
    assert "s3cret" not in shown
    assert shown.endswith("=***, and more")
