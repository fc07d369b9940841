"""Which rows of a table are expired: keys in, keys out. And which retention is refused."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import orjson
import pytest
from messages import absent, refused
from mock_kafka import MockKafka

from contract.windows import window_of
from infrastructure.settings import Settings
from streamgauge.operations.expiry import TABLES, expire, expiry_of, retention_seconds, sentence

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = 86_400.0


def key(start, group="94103", length=timedelta(hours=1), **more):
    window = {"end": f"{start + length:%Y-%m-%dT%H:%M:%SZ}", "start": f"{start:%Y-%m-%dT%H:%M:%SZ}"}
    return orjson.dumps({"window": window, "zip_code": group, **more}, option=orjson.OPT_SORT_KEYS)


def hours(first, last, **more):
    return [key(NOON + timedelta(hours=number), **more) for number in range(first, last)]


def expired(keys, retention=2 * DAY):
    return expiry_of("a-table", keys, retention).expired


def test_the_tables_are_those_with_a_window():
    windows = {"nest-camera-stats", "nest-crowds", "nest-temperatures", "taxi-borough-stats", "wikimedia.processed", "wikimedia-wiki-stats"}
    assert {table.name for table in TABLES} == {
        *windows,
        "taxi-flows",
        "taxi-zone-sessions",
        "taxi-zone-sessions-early",
        "wikimedia-editor-sessions",
    }


def test_a_window_that_ended_at_the_cut_off_is_expired_and_one_that_ended_later_is_not():
    at_cut_off, later, *newest = key(NOON), key(NOON + timedelta(seconds=1)), *hours(46, 49)
    assert expired([at_cut_off, later, *newest]) == (at_cut_off,)


def test_it_is_the_tables_own_time_that_counts_and_not_the_clock():
    years_ago = [key(datetime(1999, 1, day, tzinfo=UTC)) for day in range(1, 11)]
    assert expired(years_ago) == tuple(years_ago[:8])


def test_all_groups_of_a_window_go():
    old = [key(NOON, group) for group in ("94103", "unknown")]
    assert expired([*old, *hours(99, 101)]) == tuple(old)


def test_an_empty_table_has_no_cut_off():
    assert expiry_of("a-table", [], DAY).cut_off is None


@pytest.mark.parametrize(
    "rubbish",
    [
        b"",
        b"rubbish",
        b"[]",
        b'{"zip_code":"1"}',
        b'{"window":null}',
        b'{"window":{"end":1,"start":2}}',
        b'{"window":{"end":"+10000-01-01T00:00:00Z"}}',
    ],
)
def test_a_key_without_a_window_is_left_alone_and_counted(rubbish):
    found = expiry_of("a-table", [rubbish, key(NOON), *hours(99, 101)], DAY)
    assert window_of(rubbish) is None
    assert (found.expired, found.unclear) == ((key(NOON),), 1)
    assert re.search(r"\b1\b", sentence(found, dry_run=False)), "how many are left alone is said"


def test_one_record_with_a_wrong_clock_does_not_empty_the_table():
    found = expiry_of("a-table", [*hours(0, 48), key(datetime(2099, 1, 1, tzinfo=UTC))], DAY)
    assert found.doubt is not None
    assert "2099-01-01" in sentence(found, dry_run=False)


def test_nor_does_one_that_counts_in_several_windows():
    minute = timedelta(minutes=1)
    wrong = [key(datetime(2099, 1, 1, tzinfo=UTC) + timedelta(seconds=back), length=minute) for back in (0, 30)]
    assert expiry_of("a-table", [*hours(0, 48), *wrong], DAY).doubt is not None


def test_the_start_of_a_session_in_a_key_is_when_it_expires_and_one_wrong_clock_empties_nothing():
    sessions = [orjson.dumps({"started": f"2026-11-{day:02}T12:00:00Z", "zone_id": 7}) for day in (18, 19, 20, 21)]
    assert expired(sessions) == tuple(sessions[:2])
    assert expiry_of("a-table", [*sessions, orjson.dumps({"started": "2099-01-01T00:00:00Z", "zone_id": 7})], DAY).doubt is not None


def test_after_a_long_silence_the_second_window_settles_it():
    resumed = hours(10_000, 10_002)
    assert expiry_of("a-table", [*hours(0, 3), *resumed[:1]], DAY).doubt is not None
    found = expiry_of("a-table", [*hours(0, 3), *resumed], DAY)
    assert (found.doubt, found.expired) == (None, tuple(hours(0, 3)))


def test_what_is_said():
    keys = [*hours(0, 5), *hours(60, 62)]
    found = expiry_of("t", keys, DAY)
    would_be, were = sentence(found, dry_run=True), sentence(found, dry_run=False)
    assert absent(would_be, "t: ", "5 of 7", "2026-11-23T02:00:00Z") == absent(were, "t: ", "5 of 7", "2026-11-23T02:00:00Z") == []
    assert would_be != were
    assert absent(sentence(expiry_of("t", hours(0, 2), DAY), dry_run=False), "t: ", "2 rows", "2026-11-20") == []
    assert sentence(expiry_of("t", [], DAY), dry_run=False).startswith("t: ")


class TestRetention:
    def test_the_default_is_35_days(self):
        assert retention_seconds(Settings()) == 35 * DAY

    def test_one_that_a_query_may_still_reach_is_refused_with_the_sum(self):
        with refused("STREAMGAUGE_RESULT_RETENTION is '7 days 1 hour 10 minutes'", "more than 7 days, 1:10:00"):
            retention_seconds(replace(Settings(), result_retention="7 days 1 hour 10 minutes"))

    @pytest.mark.parametrize(
        "longer",
        [
            {"watermark": "30 days"},
            {"wikimedia_watermark": "30 days"},
            {"partition_skew": "35 days"},
            *({f"{domain}_window": "28 days"} for domain in ("nest", "taxi", "wikimedia")),
        ],
    )
    def test_each_of_its_parts_counts(self, longer):
        with refused("STREAMGAUGE_RESULT_RETENTION is '35 days'"):
            retention_seconds(replace(Settings(), **longer))

    def test_with_a_shorter_skew_a_shorter_one_will_do(self):
        assert retention_seconds(replace(Settings(), partition_skew="1 hour", result_retention="3 hours")) == 3 * 3600


def test_a_table_that_is_missing_keeps_no_other_from_being_examined(tmp_path):
    kafka, examined = MockKafka(tmp_path, ["nest-crowds"]), []
    with refused("has no topic nest-camera-stats"):
        examined.extend(expiry.topic for expiry in expire(kafka.settings, dry_run=True))
    assert examined == ["nest-crowds"]
