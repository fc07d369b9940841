"""A stop that is asked for by a signal."""

import signal

import pytest

from streamgauge.stop_signals import stop_requested


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_either_signal_asks_for_the_stop_and_ends_nothing(number):
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        stop = stop_requested()
        assert not stop.is_set()
        signal.raise_signal(number)
        assert stop.is_set()
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
