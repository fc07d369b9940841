"""Pacing, by a clock that only waiting and working move."""

from itertools import count, islice

import pytest

from producers.delivery.events import Event
from producers.delivery.pacing import at_rate, by_event_time, paced


class Clock:
    """Seconds that pass when somebody waits: `oversleeps` more than asked for."""

    def __init__(self, oversleeps=0.0):
        self.seconds, self.waits, self.oversleeps = 1000.0, 0, oversleeps

    def __call__(self):
        return self.seconds

    def wait(self, seconds):
        self.waits += 1
        self.seconds += seconds + self.oversleeps


def departures(rate, count, clock):
    return [clock.seconds - 1000.0 for _ in paced(range(count), at_rate(rate), clock=clock, wait=clock.wait)]


@pytest.mark.parametrize("rate", [0.5, 1, 100, 1000, 12_345])
def test_items_leave_at_the_rate(rate):
    times = departures(rate, int(20 * rate) + 1, Clock())
    assert times[-1] == pytest.approx(20, abs=0.03)


def test_waits_that_are_too_long_do_not_add_up():
    assert departures(1000, 60_001, Clock(oversleeps=0.004))[-1] == pytest.approx(60, abs=0.03)


def test_items_leave_five_times_a_second_those_that_are_due():
    assert departures(10, 8, Clock()) == pytest.approx([0, 0.2, 0.2, 0.4, 0.4, 0.6, 0.6, 0.8])


def test_a_high_rate_does_not_wait_for_every_item():
    clock = Clock()
    departures(1000, 10_000, clock)
    assert clock.waits <= 10 * 5 * 2


def test_a_stall_is_made_up_for():
    clock, times = Clock(), []
    for number in paced(range(4001), at_rate(100), clock=clock, wait=clock.wait):
        if number == 100:
            clock.seconds += 30
        times.append(clock.seconds - 1000.0)
    assert times[4000] == pytest.approx(40, abs=0.03)


def test_without_a_rate_nobody_waits():
    clock = Clock()
    assert departures(None, 1000, clock) == [0.0] * 1000
    assert clock.waits == 0


def test_a_stop_during_a_long_wait_is_noticed_within_a_tenth_of_a_second():
    clock = Clock()
    items = paced(range(10), at_rate(0.01), clock=clock, wait=clock.wait, is_stopped=lambda: clock.seconds >= 1005)
    assert list(items) == [0]
    assert clock.seconds == pytest.approx(1005, abs=0.11)


def test_a_stop_ends_an_endless_stream():
    clock = Clock()
    asked = iter([False] * 5 + [True])
    endless = paced(count(), at_rate(None), clock=clock, wait=clock.wait, is_stopped=lambda: next(asked))
    assert list(islice(endless, 100)) == [0, 1, 2, 3, 4]


def departures_by_event_time(times_ms, speed_up, clock):
    events = [Event(time_ms, time_ms, None, b"") for time_ms in times_ms]
    return [clock.seconds - 1000.0 for _ in paced(events, by_event_time(speed_up), clock=clock, wait=clock.wait)]


@pytest.mark.parametrize("speed_up", [1, 60, 3600])
def test_events_leave_when_their_time_has_come(speed_up):
    times_ms = [0, 720_000, 720_000, 2_160_000, 3_600_000]
    expected = pytest.approx([time_ms / 1000 / speed_up for time_ms in times_ms])
    assert departures_by_event_time(times_ms, speed_up, Clock()) == expected


def test_waits_by_event_time_that_are_too_long_do_not_add_up_and_are_shared():
    clock = Clock(oversleeps=0.004)
    assert departures_by_event_time(range(0, 60_000, 1), 1, clock)[-1] == pytest.approx(60, abs=0.03)
    assert clock.waits <= 60 * 5 * 2


def test_an_event_that_is_years_older_than_the_others_does_not_hold_them_up():
    years_ms = 15 * 365 * 86_400_000
    assert departures_by_event_time([0, years_ms, years_ms + 7_200_000, years_ms + 9_360_000], 3600, Clock())[1:] == pytest.approx(
        [1, 2, 2.6]
    )


def test_an_event_that_goes_back_in_time_leaves_at_once_and_earns_no_second_wait():
    assert departures_by_event_time([0, 10_000, 0, 10_000], 1, Clock()) == pytest.approx([0, 10, 10, 10])
