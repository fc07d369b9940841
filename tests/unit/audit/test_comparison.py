"""What counts as right, wrong and neither, row by row: values in, kinds out."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from audit.verdicts.comparison import Comparison, Excuses, Unreadable

HOUR_MS = 3_600_000
AT_FIVE = 1767243600000  # 2026-01-01T05:00:00Z


def key(hour, zip_code="94301"):
    window = {"end": f"2026-01-01T{hour + 1:02}:00:00Z", "start": f"2026-01-01T{hour:02}:00:00Z"}
    return json.dumps({"window": window, "zip_code": zip_code}, separators=(",", ":")).encode()


def rows(**by_hour):
    """Rows with the count of each hour."""
    return {key(int(hour[1:])): {"count": count} for hour, count in by_hour.items()}


def kinds(expected, found, planned=None, **excuses):
    """planned: the rows after the batch under way."""
    keys = () if planned is None else expected.keys() | planned.keys()
    under_way = {key: [planned.get(key)] for key in keys}
    return Counter(Comparison(found, expected, under_way, Excuses(**excuses)).kinds.values())


class TestEqual:
    def test_what_is_missing_extra_and_different_is_named(self):
        comparison = Comparison({**rows(h1=1, h2=5), key(9, "00000"): {"count": 7}}, rows(h1=1, h2=2, h3=3))
        assert comparison.counts == {"equal": 1, "missing": 1, "extra": 1, "different": 1}
        assert {one.kind: (one.where, one.expected, one.found) for one in comparison.differences()} == {
            "different": (key(2).decode(), {"count": 2}, {"count": 5}),
            "missing": (key(3).decode(), {"count": 3}, None),
            "extra": (key(9, "00000").decode(), None, {"count": 7}),
        }

    @pytest.mark.parametrize(
        ("found", "kind"),
        [
            ({"sum": Decimal("10000000000000000.01")}, "equal"),
            ({"sum": Decimal("10000000000000000.02")}, "different"),
            ({"sum": "10000000000000000.01"}, "different"),
            ({"sum": Decimal("10000000000000000.01"), "more": None}, "different"),
            ({}, "different"),
            (Unreadable("rubbish"), "different"),
        ],
    )
    def test_numbers_are_compared_digit_by_digit_and_each_column_counts(self, found, kind):
        assert kinds({key(1): {"sum": Decimal("10000000000000000.01")}}, {key(1): found}) == {kind: 1}

    def test_true_is_not_1(self):
        assert kinds(rows(h1=1), rows(h1=True)) == {"different": 1}


class TestBatchUnderWay:
    def test_a_row_may_be_that_of_the_batch_under_way_but_no_other(self):
        planned = rows(h1=2, h2=2, h3=2, h4=1)
        assert kinds(rows(h1=1, h2=1, h3=1), rows(h1=1, h2=2, h3=3, h4=1), planned) == {"equal": 3, "different": 1}

    def test_a_row_that_the_batch_has_first_may_be_there_or_not(self):
        assert kinds(rows(h1=1), rows(h1=1), rows(h1=1, h2=1)) == {"equal": 2}

    def test_a_row_that_the_batch_deletes_may_be_there_or_not(self):
        assert kinds(rows(h1=1, h2=1), rows(h1=1), rows(h1=1)) == {"equal": 2}
        assert kinds(rows(h1=1, h2=1), rows(h1=1, h2=1), rows(h1=1)) == {"equal": 2}
        assert kinds(rows(h1=1, h2=1), rows(h1=1, h2=2), rows(h1=1)) == {"equal": 1, "different": 1}

    def test_a_row_of_both_batches_must_be_there(self):
        assert kinds(rows(h1=1), {}, rows(h1=2)) == {"missing": 1}

    def test_a_key_that_the_batch_writes_several_times_may_hold_any_of_its_rows(self):
        under_way = {key(1): [{"count": 2}, None, {"count": 4}]}
        for found, kind in (({"count": 1}, "equal"), ({"count": 2}, "equal"), (None, "equal"), ({"count": 3}, "different")):
            comparison = Comparison({} if found is None else {key(1): found}, rows(h1=1), under_way)
            assert comparison.counts == {kind: 1}, found

    def test_in_real_time_mode_a_row_may_lie_between_the_two_batches_but_not_outside(self):
        expected, planned = rows(h1=1, h2=2, h3=2, h4=2), rows(h1=1, h2=5, h3=5, h4=5, h5=5)
        found = rows(h1=1, h2=3, h3=6, h4=1, h5=4, h6=1)
        assert kinds(expected, found, planned, is_real_time=True, growing=("count",)) == {
            "equal": 1,
            "ahead": 2,
            "different": 2,
            "extra": 1,
        }

    def test_in_real_time_mode_a_sum_may_lie_between_too_and_appears_with_the_first_event_that_adds_to_it(self):
        def kind(**found):
            totals = [{"edits": 1, "added": Decimal(7)}, {"edits": 4, "added": Decimal(9), "removed": Decimal(3)}]
            comparison = Comparison(
                {b"": found}, {b"": totals[0]}, {b"": [totals[1]]}, Excuses(is_real_time=True, growing=("edits", "added", "removed"))
            )
            return comparison.kinds[b""]

        assert kind(edits=2, added=7) == kind(edits=3, added=8, removed=3) == "ahead"
        assert kind(edits=2, added=10) == kind(edits=2, removed=3) == kind(edits=True, added=7) == kind(edits=2, added="") == "different"

    def test_in_real_time_mode_a_row_that_no_record_is_to_change_must_be_right_whether_or_not_a_column_grows(self):
        for growing in ((), ("count",)):
            assert kinds(rows(h1=1), rows(h1=2), is_real_time=True, growing=growing) == {"different": 1}
        assert kinds(rows(h1=1), rows(h1=2), rows(h1=3), is_real_time=True) == {"ahead": 1}, "without such a column, any may be"


class TestExpired:
    def test_windows_may_be_gone_that_ended_long_before_the_newest(self):
        assert kinds(rows(h3=1, h4=1, h5=1, h8=1), rows(h8=1), kept_for=timedelta(hours=4)) == {"equal": 1, "expired": 2, "missing": 1}

    def test_a_row_that_should_not_be_there_lets_no_other_expire(self):
        assert kinds(rows(h1=1, h2=1), rows(h2=1, h20=1), kept_for=timedelta(hours=4)) == {"equal": 1, "missing": 1, "extra": 1}

    def test_an_expired_row_that_is_there_must_be_right(self):
        assert kinds(rows(h1=1, h8=1), rows(h1=2, h8=1), kept_for=timedelta(hours=4)) == {"equal": 1, "different": 1}


class TestLost:
    def test_a_row_may_hold_more_than_is_left_but_not_less(self):
        found = kinds(rows(h1=1, h2=5, h3=3), rows(h1=3, h2=2, h4=1), newest_lost_ms=AT_FIVE, growing=("count",))
        assert found == {"not_checkable": 2, "different": 1, "missing": 1}

    def test_windows_that_began_after_the_last_lost_event_must_be_right(self):
        found = kinds(rows(h5=1, h6=1), rows(h5=2, h6=2, h7=1), newest_lost_ms=AT_FIVE, growing=("count",))
        assert found == {"not_checkable": 1, "different": 1, "extra": 1}

    def test_a_session_that_lost_events_may_begin_earlier_and_end_later_than_what_is_left_of_it(self):
        excuses = {"newest_lost_ms": AT_FIVE - 2 * HOUR_MS, "session_gap": timedelta(hours=1)}
        assert kinds(rows(h4=1), rows(h2=2), **excuses) == {"not_checkable": 2}
        assert kinds(rows(h5=1), rows(h5=2), **excuses) == {"different": 1}
        assert kinds(rows(h4=1, h5=1), {}, **excuses) == {"not_checkable": 1, "missing": 1}
        assert kinds(rows(h2=1), {key(2): Unreadable("null")}, **excuses) == {"different": 1}, "a value is there"

    @pytest.mark.parametrize(("hour", "kind"), [("04", "not_checkable"), ("06", "different")])
    def test_a_row_without_a_window_is_not_checkable_if_one_of_its_times_is_before_the_cut(self, hour, kind):
        expected, found = ({"state": state, "since": f"2026-01-01T{at}:00:00Z"} for state, at in (("online", "09"), ("offline", hour)))
        camera = b'{"device_id":"cam-1"}'
        assert kinds({camera: expected}, {camera: found}, newest_lost_ms=AT_FIVE) == {kind: 1}
        assert kinds({camera: expected}, {camera: found}) == {"different": 1}

    def test_a_value_that_cannot_be_read_is_not_excused(self):
        found = {key(1): Unreadable("x"), key(2): Unreadable("x")}
        assert kinds(rows(h1=1), found, newest_lost_ms=AT_FIVE, growing=("count",)) == {"different": 1, "extra": 1}


def test_rows_that_may_have_been_late_are_counted_apart_if_they_differ():
    found = kinds(rows(h1=1, h2=2, h3=3), rows(h1=1, h2=1, h3=1), unknown_lateness={key(1), key(2)})
    assert found == {"equal": 1, "unknown_lateness": 1, "different": 1}


class TestDeletedWithTheOldestRecords:
    """Of a topic that keeps its records for a time only, as alerts."""

    OLD, NEW = ({"since": f"2026-01-{day:02}T10:00:00Z", "state": "offline"} for day in (1, 20))
    ALERT = b'{"device_id":"cam-1"}'

    @pytest.mark.parametrize(
        ("expected", "lost_before", "kind"),
        [
            (OLD, datetime(2026, 1, 10, tzinfo=UTC), "expired"),
            (NEW, datetime(2026, 1, 10, tzinfo=UTC), "missing"),
            (OLD, None, "missing"),
            ({"state": "offline"}, datetime(2026, 1, 10, tzinfo=UTC), "missing"),
        ],
        ids=["older than all records", "younger", "the topic has lost nothing", "of no time"],
    )
    def test_a_row_may_be_missing_that_is_older_than_all_records_of_the_topic(self, expected, lost_before, kind):
        found = Comparison({}, {self.ALERT: expected}, excuses=Excuses(lost_before=lost_before))
        assert found.counts == {kind: 1}

    def test_a_row_that_is_there_is_to_be_right_however_old_it_is(self):
        excuses = Excuses(lost_before=datetime(2026, 1, 10, tzinfo=UTC))
        found = Comparison({self.ALERT: {**self.OLD, "state": "online"}}, {self.ALERT: self.OLD}, excuses=excuses)
        assert found.counts == {"different": 1}
