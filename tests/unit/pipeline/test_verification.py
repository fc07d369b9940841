"""The comparison of tables, and the offset ranges of records by which lateness is told: values in, values out."""

import json
from datetime import timedelta
from types import SimpleNamespace

import pytest

from pipeline.checkpoint.contents import Batch
from pipeline.verification.lateness import OffsetRange, offset_ranges
from pipeline.verification.outcome import Lateness, Outcome, RowCounts
from pipeline.verification.show import as_json
from pipeline.verification.tables import Tables, own_rows

A, B, C = ("topic", 0), ("topic", 1), ("topic", 2)
CUT = {"is_cut": True, "growing": ("count",), "newest_cut_ms": 1767243600000}  # 2026-01-01T05:00:00Z


def key(hour, zip_code="94301"):
    window = {"end": f"2026-01-01T{hour + 1:02}:00:00Z", "start": f"2026-01-01T{hour:02}:00:00Z"}
    return json.dumps({"window": window, "zip_code": zip_code}, separators=(",", ":")).encode()


def row(count):
    return json.dumps({"count": count}).encode()


def rows(**by_hour):
    return {key(int(hour[1:])): row(count) for hour, count in by_hour.items()}


def compared(expected, found, **more):
    counts, differences = Tables(expected, found, **more).compare()
    return SimpleNamespace(counts=counts, differences=differences)


class TestOwnRows:
    def test_rows_with_other_keys_and_those_from_before_the_first_expected_window_are_left_out(self):
        others = {b"nest-archive": row(1), b'{"device_id":"a1"}': row(1), key(3).replace(b"zip_code", b"device_id"): row(1)}
        found = {**others, **rows(h1=1, h2=2, h3=3)}
        assert own_rows(found, rows(h2=2), ("zip_code", "window")) == rows(h2=2, h3=3)

    def test_without_expected_rows_none_is_compared(self):
        assert own_rows(rows(h1=1), {}, ("zip_code", "window")) == {}


class TestTables:
    def test_equal_rows_are_equal_however_they_are_written(self):
        found = {key(1): b'{ "count" : 1 }'}
        assert compared(rows(h1=1), found).counts == RowCounts(equal=1)

    def test_numbers_are_compared_as_they_are_written_and_not_as_binary_fractions(self):
        one, other = b'{"sum": 10000000000000000.01}', b'{"sum": 10000000000000000.02}'
        assert float("10000000000000000.01") == float("10000000000000000.02")
        assert compared({key(1): one}, {key(1): other}).counts == RowCounts(different=1)

    def test_names_what_is_missing_extra_and_different(self):
        found = compared(rows(h1=1, h2=2, h3=3), {**rows(h1=1, h2=5), key(9, "00000"): row(7)})
        assert found.counts == RowCounts(equal=1, missing=1, extra=1, different=1)
        by_kind = {difference.kind: difference for difference in found.differences}
        assert by_kind["different"].where == key(2).decode()
        assert (by_kind["different"].expected, by_kind["different"].found) == ({"count": 2}, {"count": 5})
        assert (by_kind["missing"].expected, by_kind["missing"].found) == ({"count": 3}, None)
        assert (by_kind["extra"].expected, by_kind["extra"].found) == (None, {"count": 7})

    @pytest.mark.parametrize("value", [b"", b"[]", b"null", b"not JSON", b"\xff"])
    def test_a_value_that_cannot_be_read_is_different(self, value):
        found = compared(rows(h1=1), {key(1): value})
        assert found.counts == RowCounts(different=1)
        assert "not readable" in found.differences[0].found

    def test_a_row_may_be_that_of_the_batch_under_way_but_no_other(self):
        ahead = rows(h1=2, h2=2, h3=2, h4=1)
        found = compared(rows(h1=1, h2=1, h3=1), rows(h1=1, h2=2, h3=3, h4=1), expected_ahead=lambda: ahead)
        assert found.counts == RowCounts(equal=3, different=1)

    def test_a_row_that_the_batch_under_way_has_first_may_be_there_or_not(self):
        ahead = rows(h1=1, h2=1)
        assert compared(rows(h1=1), rows(h1=1), expected_ahead=lambda: ahead).counts == RowCounts(equal=1)
        assert compared(rows(h1=1), rows(h1=1, h2=1), expected_ahead=lambda: ahead).counts == RowCounts(equal=2)

    def test_a_committed_row_must_be_there_also_when_a_batch_is_under_way(self):
        assert compared(rows(h1=1), {}, expected_ahead=lambda: rows(h1=2)).counts == RowCounts(missing=1)

    def test_in_real_time_mode_a_row_may_lie_between_the_two_batches_but_not_outside(self):
        excuses = {"is_real_time": True, "growing": ("count",)}
        expected, ahead = rows(h1=1, h2=2, h3=2, h4=2), rows(h1=1, h2=5, h3=5, h4=5, h5=5)
        found = compared(expected, rows(h1=1, h2=3, h3=6, h4=1, h5=4, h6=1), **excuses, expected_ahead=lambda: ahead)
        assert found.counts == RowCounts(equal=1, ahead=2, different=2, extra=1)

    def test_the_batch_under_way_is_counted_only_when_something_differs(self):
        def never():
            pytest.fail("nothing differs, so nobody need count again")

        assert compared(rows(h1=1), rows(h1=1), expected_ahead=never).counts == RowCounts(equal=1)

    def test_windows_may_expire_that_ended_long_before_the_newest(self):
        found = compared(rows(h3=1, h4=1, h5=1, h8=1), rows(h8=1), kept_for=timedelta(hours=4))
        assert found.counts == RowCounts(equal=1, expired=2, missing=1)

    def test_the_newest_window_may_be_of_the_batch_under_way(self):
        ahead = rows(h4=1, h5=1, h8=1, h9=1)
        found = compared(rows(h4=1, h5=1, h8=1), rows(h8=1, h9=1), kept_for=timedelta(hours=4), expected_ahead=lambda: ahead)
        assert found.counts == RowCounts(equal=2, expired=2)

    def test_a_row_that_should_not_be_there_lets_no_other_expire(self):
        found = compared(rows(h1=1, h2=1), rows(h2=1, h20=1), kept_for=timedelta(hours=4))
        assert found.counts == RowCounts(equal=1, missing=1, extra=1)

    def test_an_expired_row_that_is_there_must_be_right(self):
        found = compared(rows(h1=1, h8=1), rows(h1=2, h8=1), kept_for=timedelta(hours=4))
        assert found.counts == RowCounts(equal=1, different=1)

    def test_rows_that_may_have_been_late_are_counted_apart_if_they_differ(self):
        found = compared(rows(h1=1, h2=2, h3=3), rows(h1=1, h2=1, h3=1), unknown_lateness={key(1), key(2)})
        assert found.counts == RowCounts(equal=1, unknown_lateness=1, different=1)


class TestRetention:
    @pytest.mark.parametrize(("hour", "kind"), [("04", "not_checkable"), ("06", "different")])
    def test_a_row_without_a_window_is_not_checkable_if_one_of_its_times_is_before_the_cut(self, hour, kind):
        key, value = b'{"device_id":"cam-1"}', '{"state": "%s", "since": "2026-01-01T%s:00:00Z", "last_seen": "2026-01-01T09:00:00Z"}'
        expected, found = {key: (value % ("online", "09")).encode()}, {key: (value % ("offline", hour)).encode()}
        assert compared(expected, found, **CUT).counts == RowCounts(**{kind: 1})
        assert compared(expected, found).counts == RowCounts(different=1)

    def test_the_sink_may_hold_more_than_is_left_but_not_less(self):
        found = compared(rows(h1=1, h2=5, h3=3), rows(h1=3, h2=2, h4=1), **CUT)
        assert found.counts == RowCounts(not_checkable=2, different=1, missing=1)

    def test_windows_that_began_after_the_last_lost_event_must_be_right(self):
        found = compared(rows(h5=1, h6=1), rows(h5=2, h6=2, h7=1), **CUT)
        assert found.counts == RowCounts(not_checkable=1, different=1, extra=1)

    def test_a_session_that_lost_events_may_begin_earlier_and_end_later_than_what_is_left_of_it(self):
        at_3 = 1767236400_000
        excuses = {"is_cut": True, "newest_cut_ms": at_3, "session_gap": timedelta(hours=1)}
        assert compared(rows(h4=1), rows(h2=2), **excuses).counts == RowCounts(not_checkable=2)
        assert compared(rows(h5=1), rows(h5=2), **excuses).counts == RowCounts(different=1)
        assert compared(rows(h4=1, h5=1), {}, **excuses).counts == RowCounts(not_checkable=1, missing=1)
        assert compared(rows(h2=1), {key(2): b"null"}, **excuses).counts == RowCounts(different=1), "a value is there"
        assert compared(rows(h4=1), {}, is_cut=True, newest_cut_ms=at_3).counts == RowCounts(missing=1), "windows keep their keys"

    def test_a_value_that_cannot_be_read_is_not_excused(self):
        assert compared(rows(h1=1), {key(1): b"x", key(2): b"x"}, **CUT).counts == RowCounts(different=1, extra=1)


def batch(number, watermark_ms=0, **ends):
    return Batch(number, {("topic", int(partition[1:])): end for partition, end in ends.items()}, watermark_ms)


class TestStretches:
    def test_a_record_is_late_by_the_watermark_of_the_batch_before_its_own(self):
        batches = [batch(0, 0, p0=10), batch(1, 500, p0=20), batch(2, 900, p0=30)]
        assert offset_ranges({A: 0}, batches, committed=2) == [
            OffsetRange(A, 0, 10, 0, 0),
            OffsetRange(A, 10, 20, 0, 0),
            OffsetRange(A, 20, 30, 500, 500),
        ]

    def test_a_batch_without_records_moves_the_watermark_too(self):
        batches = [batch(0, 0, p0=10), batch(1, 500, p0=10), batch(2, 500, p0=20)]
        assert offset_ranges({A: 0}, batches, committed=2) == [OffsetRange(A, 0, 10, 0, 0), OffsetRange(A, 10, 20, 500, 500)]

    def test_the_first_batch_begins_where_the_query_has_started_and_later_partitions_at_0(self):
        batches = [batch(0, 0, p0=10, p1=5), batch(1, 7, p0=10, p1=6, p2=3)]
        assert offset_ranges({A: 4, B: 5}, batches, committed=1) == [
            OffsetRange(A, 4, 10, 0, 0),
            OffsetRange(B, 5, 6, 0, 0),
            OffsetRange(C, 0, 3, 0, 0),
        ]

    def test_the_records_of_the_batch_under_way_are_told_apart(self):
        batches = [batch(0, 0, p0=10), batch(1, 0, p0=20)]
        assert offset_ranges({A: 0}, batches, committed=0) == [OffsetRange(A, 0, 10, 0, 0), OffsetRange(A, 10, 20, 0, 0, is_ahead=True)]

    def test_where_batches_are_missing_lateness_is_known_within_the_watermarks_around_them(self):
        batches = [batch(0, 100, p0=10), batch(4, 500, p0=50), batch(5, 600, p0=60)]
        assert offset_ranges({A: 0}, batches, committed=5) == [
            OffsetRange(A, 0, 10, 0, 0),
            OffsetRange(A, 10, 50, 100, 500),
            OffsetRange(A, 50, 60, 500, 500),
        ]

    def test_before_the_first_batch_that_is_known_nothing_is_certainly_late_but_what_is_before_1970(self):
        assert offset_ranges({A: 0}, [batch(7, 500, p0=50)], committed=7) == [OffsetRange(A, 0, 50, 0, 500)]


def test_the_json_says_all():
    outcome = Outcome("q", "topic t", "s", 3, 10, RowCounts(equal=1, missing=2), Lateness(5, 4, 3, 2, 1, 0))
    found = json.loads(as_json([outcome]))[0]
    assert found["verdict"] == "wrong"
    assert found["rows"] == {
        "compared": 3,
        "equal": 1,
        "missing": 2,
        "extra": 0,
        "different": 0,
        "expired": 0,
        "not_checkable": 0,
        "unknown_lateness": 0,
        "ahead": 0,
    }
    assert found["lateness"] == {"rows": 5, "events": 4, "late_rows": 3, "late_events": 2, "unknown_rows": 1, "wrongly_late_events": 0}
