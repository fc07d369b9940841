"""In real-time mode, rows are ahead of the last committed batch: what the audit finds all the same, and what it must not take for an error."""

import json
import os
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import orjson
import pytest
from auditing import STATS, TEN_MS, Kafka, looks

from audit.checks import commits
from audit.continuous.loop import Audit

TEMPERATURES = "nest-temperatures"
WINDOW = {"end": "2026-01-01T11:00:00Z", "start": "2026-01-01T10:00:00Z"}


class Readings:
    """A query that counts one home's readings of one hour, and the audit of its table. One reading a minute."""

    def __init__(self, home):
        self.broker, self.ends = Kafka(home, ("nest-logs", TEMPERATURES)), 0
        self.broker.settings = replace(self.broker.settings, real_time="5 seconds")
        self.audit = Audit(self.broker.settings, print)

    def write(self, number, *, without=0, average=20.0):
        """So many readings, and after each but the last ones the row that counts them."""
        for end in range(self.ends + 1, self.ends + number + 1):
            device = {"structure_id": "home", "last_connection": f"2026-01-01T10:{end:02}:00Z", "ambient_temperature_c": 20}
            self.broker.write("nest-logs", orjson.dumps({"devices": {"thermostats": {"a": device}}}))
        for end in range(max(self.ends + 1 - without, 1), self.ends + number + 1 - without):
            self.write_row(end, average)
        self.ends += number

    def write_row(self, readings, average=20.0):
        row = {"structure_id": "home", "window": WINDOW, "readings": readings, "ambient_temperature_c_avg": average}
        row |= dict.fromkeys(("ambient_temperature_c_min", "ambient_temperature_c_max"), 20.0)
        self.broker.write(
            TEMPERATURES, orjson.dumps(row), key=json.dumps({"structure_id": "home", "window": WINDOW}, separators=(",", ":"))
        )

    def end_batch(self, number, end, watermark_ms=0):
        self.broker.plan(TEMPERATURES, "real-time", number, end, watermark_ms)
        self.broker.commit(TEMPERATURES, "real-time", number, watermark_ms)

    def look(self):
        """The kind of the row."""
        (verdict,) = looks(self.audit).values()
        (kind,) = (kind for kind, number in verdict.rows.by_kind.items() if number and kind not in {"compared", "unknown_lateness_rows"})
        return kind


@pytest.fixture
def readings(tmp_path):
    found = Readings(tmp_path)
    yield found
    found.audit.close()


def test_a_row_that_is_always_ahead_must_have_been_right_when_each_batch_was_committed(readings):
    kinds = []
    for number in range(8):  # four records, of which the batch has two, and a row tells of three
        readings.write(4, without=1, average=20.01 if number in {4, 5} else 20.0)
        readings.end_batch(number, 4 * number + 2)
        kinds += [readings.look(), readings.look()]
    assert kinds == ["ahead"] * 8 + ["different"] * 4 + ["ahead"] * 4


def test_what_the_topic_got_at_a_look_that_did_not_know_all_batches_is_not_held_against_the_next_one(readings):
    plan = readings.broker.checkpoint(TEMPERATURES, "real-time") / "offsets" / "2"
    for number in range(3):
        readings.write(4)
        readings.end_batch(number, 4 * number + 3)
        assert readings.look() == "equal", "to all records"
    content = plan.read_text()
    plan.unlink()
    readings.write(4)
    readings.end_batch(3, 14, TEN_MS + 15 * 60_000)  # by this watermark, the last records may have been late
    readings.write(4)
    assert readings.look() == "equal"
    plan.write_text(content)
    readings.end_batch(4, 19, TEN_MS + 15 * 60_000)
    assert readings.look() == "equal", "the row of 19 readings was written before the last look"


@pytest.mark.parametrize(("size", "told"), [(10, {b"a"}), (1_000, set())], ids=["few", "many"])
def test_of_a_batch_that_does_not_end_it_keeps_what_it_has_memory_for_and_else_begins_again(monkeypatch, size, told):
    monkeypatch.setattr(commits, "MOST_BYTES", 2_000)
    rows = commits.AtCommits(json.loads)

    def look(number, count, has=None):
        return rows.lacking(number, {b"a": {"n": count}}, {}, {b"a": [orjson.dumps({"n": count if has is None else has})]})

    def begin(number):
        assert [look(number + one, number + one) for one in range(3)] == [set()] * 3

    begin(0)
    for _ in range(4):
        assert rows.lacking(2, {b"a": {"n": 2}}, {}, {b"b": [b" " * size]}) == set()
    assert look(3, 3, has=9) == told
    begin(4)
    assert look(7, 7, has=9) == {b"a"}


def test_a_row_that_is_wrong_stays_wrong_after_a_gap_until_a_batch_shows_that_it_is_right():
    rows = commits.AtCommits(json.loads)

    def look(number, has=None):
        return rows.lacking(number, {b"a": {"n": number}}, {}, None if has is None else {b"a": [orjson.dumps({"n": has})]})

    assert [look(number, number) for number in range(3)] == [set()] * 3
    assert look(3, 99) == {b"a"}
    assert [look(3), look(4), look(5, 99), look(6, 99)] == [{b"a"}] * 4, "a gap, and batches after it"
    assert [look(7, 7), look(7), look(8, 8)] == [set()] * 3


TIMES = int(os.environ.get("INJECTIONS", "25"))
"""How many errors of each kind are injected, each into a row of its own."""
BATCHES, CAMERAS = 10, 3
HOURS = TIMES // 2 + 1
"""In each batch."""
START = datetime(2026, 1, 1, tzinfo=UTC)


class Sightings:
    """A query that counts sightings by hour, each camera once, and makes a mistake of that kind in the hours `wrong`.

    In each hour, one more sighting comes three batches too late.
    """

    def __init__(self, home, kind, wrong):
        self.broker, self.kind, self.wrong, self.end = Kafka(home), kind, wrong, 0
        self.broker.settings = replace(self.broker.settings, real_time="5 seconds")

    def source(self, hour, camera, minute):
        event = {"has_person": True, "start_time": (START + timedelta(hours=hour, minutes=minute)).isoformat()}
        self.broker.write(
            "nest-logs", orjson.dumps({"devices": {"cameras": {camera: {"last_event": event}}}}), timestamp_ms=self.now_ms(hour)
        )
        self.end += 1

    def now_ms(self, hour):
        return round((START + timedelta(hours=hour + 4 * HOURS)).timestamp() * 1000)

    def row(self, hour, count):
        window = {name: (START + timedelta(hours=one)).strftime("%Y-%m-%dT%H:%M:%SZ") for name, one in (("end", hour + 1), ("start", hour))}
        row = {"zip_code": "unknown", "window": window, "count": count}
        key = orjson.dumps({"window": window, "zip_code": "unknown"})
        self.broker.write(STATS, orjson.dumps(row), key=key)

    def hour(self, hour):
        """The sightings of an hour, and its row after each."""
        kind = self.kind if hour in self.wrong else None
        for camera in range(CAMERAS):
            self.source(hour, f"camera {camera}", 10 * camera)
            count = camera + 1 + {"a lost record": -1, "a doubled one": 1}.get(kind, 0)
            if count and not (kind == "a stale row" and camera == CAMERAS - 1):
                self.row(hour, count)
        if (late := hour - 3 * HOURS) >= 0:
            self.source(late, "late", 40)
            if self.kind == "a late one counted" and late in self.wrong:
                self.row(late, CAMERAS + 1)

    def end_batch(self, number):
        newest = START + timedelta(hours=(number + 1) * HOURS - 1, minutes=10 * (CAMERAS - 1))
        before = max(round((newest - timedelta(hours=HOURS, minutes=10)).timestamp() * 1000), 0) if number else 0
        self.broker.plan(STATS, "real-time", number, self.end, before)
        self.broker.commit(STATS, "real-time", number, round((newest - timedelta(minutes=10)).timestamp() * 1000))


@pytest.mark.parametrize("kind", ["a lost record", "a doubled one", "a late one counted", "a stale row"])
def test_an_error_is_found_when_its_batch_ends_at_the_latest_and_no_other_row_is_blamed(tmp_path, kind):
    rng = random.Random(kind)
    lag = 3 * HOURS if kind == "a late one counted" else 0
    wrong = {*rng.sample(range(BATCHES * HOURS - lag), TIMES)}
    sightings = Sightings(tmp_path, kind, wrong)
    audit, injected = Audit(sightings.broker.settings, print), 0
    keys = {(START + timedelta(hours=hour)).strftime('"start":"%Y-%m-%dT%H:%M:%SZ"') for hour in wrong}

    def check(verdict):
        blamed = {one.where for one in verdict.differences}
        assert all(any(key in one for key in keys) for one in blamed), blamed
        return verdict.rows.wrong

    for number in range(BATCHES):
        for hour in range(number * HOURS, (number + 1) * HOURS):
            sightings.hour(hour)
            injected += hour - lag in wrong
            if hour == number * HOURS + HOURS // 2:  # rows are ahead of the last checkpoint
                check(*looks(audit).values()) if number else None
        sightings.end_batch(number)
        assert check(*looks(audit).values()) == injected, f"after batch {number}"
    sightings.wrong = set()
    sightings.hour(BATCHES * HOURS)
    assert check(*looks(audit).values()) == check(sightings.broker.verdict(STATS)) == injected == TIMES
    audit.close()
