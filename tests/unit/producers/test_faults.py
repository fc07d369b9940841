"""Faults, over streams whose times are written out: what is held back, for how long, and what it is called."""

from collections import Counter

import pytest

from infrastructure.errors import StreamgaugeError
from producers.delivery.events import Event
from producers.delivery.faults import Faults, Kind, Record, with_faults

WATERMARK_MS = 600_000


def stream(count, step_ms=1000, age_ms=0):
    """An event a second; the oldest time in each is `age_ms` before its own."""
    return [Event(n * step_ms, n * step_ms - age_ms, b"k", b"value %d" % n) for n in range(count)]


def damaged(_value, number):
    return b"damaged %d" % number


def sent(events, **faults):
    return list(with_faults(events, Faults(**faults), damaged))


def with_stream_times(records):
    """Each record, with the greatest event time that was sent before it."""
    time_ms, pairs = 0, []
    for record in records:
        pairs.append((record, time_ms))
        time_ms = max(time_ms, record.event.event_time_ms)
    return pairs


def test_without_faults_the_events_pass_in_order():
    events = stream(100)
    assert sent(events) == [Record(Kind.ON_TIME, event) for event in events]


def test_the_same_seed_gives_the_same_records_and_another_seed_others():
    faults = {"late": 0.1, "too_late": 0.1, "duplicates": 0.1, "corrupt": 0.1}
    assert sent(stream(3000), seed=1, **faults) == sent(stream(3000), seed=1, **faults)
    assert sent(stream(3000), seed=1, **faults) != sent(stream(3000), seed=2, **faults)


@pytest.mark.parametrize("fault", ["late", "too_late", "duplicates", "corrupt"])
def test_a_fraction_is_the_fraction_of_events(fault):
    kinds = Counter(record.kind for record in sent(stream(20_000), **{fault: 0.1}))
    kind = Kind.DUPLICATE if fault == "duplicates" else Kind(fault)
    # The last 600 of 20,000 too-late events meet the end before they are too late.
    assert 1700 < kinds[kind] < 2200


def test_every_event_is_sent_once_and_duplicates_and_damaged_copies_come_on_top():
    events = stream(10_000)
    records = sent(events, late=0.1, too_late=0.1, duplicates=0.1, corrupt=0.1)
    originals = [record.event for record in records if record.kind in {Kind.ON_TIME, Kind.LATE, Kind.TOO_LATE}]
    assert sorted(originals) == events


@pytest.mark.parametrize("age_ms", [0, 300_000])
def test_late_records_are_overtaken_and_stay_within_the_watermark_with_all_they_report(age_ms):
    late = [pair for pair in with_stream_times(sent(stream(10_000, age_ms=age_ms), late=0.2)) if pair[0].kind is Kind.LATE]
    assert any(time_ms - record.event.event_time_ms > 60_000 for record, time_ms in late), "nothing was overtaken"
    assert max(time_ms - record.event.oldest_time_ms for record, time_ms in late) <= 0.8 * WATERMARK_MS


def test_late_records_stay_within_the_watermark_when_the_stream_leaps():
    leaping = stream(500, step_ms=1_700_000)
    assert all(
        time_ms - record.event.oldest_time_ms <= 0.8 * WATERMARK_MS for record, time_ms in with_stream_times(sent(leaping, late=0.5))
    )


def test_too_late_records_are_two_watermarks_behind():
    records = with_stream_times(sent(stream(10_000), too_late=0.2))
    end = 9_999_000
    behind = [
        time_ms - record.event.event_time_ms
        for record, time_ms in records
        if record.kind is Kind.TOO_LATE and record.event.event_time_ms < end - 2 * WATERMARK_MS - 10_000
    ]
    assert len(behind) > 1000
    assert min(behind) >= 2 * WATERMARK_MS


def test_what_is_held_back_at_the_end_is_sent_and_called_what_it_is():
    records = with_stream_times(sent(stream(1000), too_late=0.5))
    held = [(record, time_ms) for record, time_ms in records if record.kind is not Kind.ON_TIME]
    assert len(records) == 1000
    assert {record.kind for record, _ in held} == {Kind.LATE, Kind.TOO_LATE}
    for record, time_ms in held:
        is_within = time_ms - record.event.oldest_time_ms <= WATERMARK_MS
        assert is_within == (record.kind is Kind.LATE)


def test_duplicates_follow_their_original_soon():
    seen = {}
    for record, time_ms in with_stream_times(sent(stream(10_000), duplicates=0.2)):
        if record.kind is Kind.DUPLICATE:
            assert seen[record.event.value] == record.event
            assert time_ms - record.event.event_time_ms <= 0.3 * WATERMARK_MS
        seen[record.event.value] = record.event


def test_a_damaged_copy_comes_with_its_original_and_states_nothing():
    events = [Event(1000, 1000, b"k", b"v", (("camera", 1000),))]
    original, copy = sent(events, corrupt=1.0)
    assert original == Record(Kind.ON_TIME, events[0])
    assert copy == Record(Kind.CORRUPT, Event(1000, 1000, b"k", b"damaged 0", (), is_usable=False))


def test_what_was_damaged_from_the_start_meets_no_fault():
    unusable = Event(0, 0, None, b"rubbish", is_usable=False)
    assert sent([unusable], duplicates=1.0) == [Record(Kind.CORRUPT, unusable)]


def test_records_are_held_for_no_longer_than_two_watermarks():
    taken = 0

    def counted():
        nonlocal taken
        for event in stream(20_000):
            taken += 1
            yield event

    for sent_so_far, _ in enumerate(with_faults(counted(), Faults(late=0.3, too_late=0.3), damaged)):
        assert taken - sent_so_far <= 2 * WATERMARK_MS / 1000


def test_fractions_above_1_together_are_refused():
    with pytest.raises(StreamgaugeError, match=r"1\.2 together"):
        Faults(late=0.6, duplicates=0.6)
    Faults(late=0.1, too_late=0.2, duplicates=0.3, corrupt=0.4)
