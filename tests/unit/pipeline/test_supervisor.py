"""Which failures are tried again, how often and after how long."""

import pytest

from pipeline.supervisor import AFTER_A_BATCH_RUN_AGAIN, RestartPolicy
from streamgauge.errors import StreamgaugeError
from streamgauge.settings import Settings

SETTINGS = Settings()


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_a_failing_query_is_started_again_ever_later_and_then_given_up():
    policy = RestartPolicy(limit=3, back_off_seconds=1, clock=Clock())
    assert [policy.restart("q", "disk on fire", SETTINGS).after_seconds for _ in range(3)] == [1, 2, 4]
    with pytest.raises(StreamgaugeError, match="query q failed 4 times within 300 s and is given up: disk on fire"):
        policy.restart("q", "disk on fire", SETTINGS)


def test_failures_long_ago_do_not_count():
    clock = Clock()
    policy = RestartPolicy(limit=1, within_seconds=60, clock=clock)
    for _ in range(5):
        assert policy.restart("q", "boom", SETTINGS).after_seconds == 1
        clock.now += 61


def test_each_query_has_its_own_count():
    policy = RestartPolicy(limit=1, clock=Clock())
    policy.restart("a", "boom", SETTINGS)
    assert policy.restart("b", "boom", SETTINGS).after_seconds == 1


def test_data_loss_is_never_tried_again_and_names_both_ways_out():
    with pytest.raises(StreamgaugeError, match="STREAMGAUGE_FAIL_ON_DATA_LOSS=false") as error:
        RestartPolicy().restart("q", "Some data may have been lost because ... failOnDataLoss", SETTINGS)
    assert "delete" in str(error.value)


def test_a_batch_run_again_is_no_failure():
    policy = RestartPolicy(limit=0)
    assert policy.restart("q", AFTER_A_BATCH_RUN_AGAIN, SETTINGS).after_seconds == 0
