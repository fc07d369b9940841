"""The Wikimedia transforms on static frames: what counts, in which windows, and what lands in the dead letters."""

from datetime import UTC, datetime
from functools import partial

import pytest
from avro import V1, V2, change, in_wire_format, nullable
from letters import reasons

from pipeline.domains.wikimedia import changes, edit_stats, edits, unusable, wiki_stats
from pipeline.formats.confluent_avro import WriterSchemas

SCHEMAS = WriterSchemas(V1, {3: V1, 4: V2}, absent=frozenset({77}), given_up=frozenset({77}))
YEAR_10000 = 253_402_300_800
letters_of = partial(unusable, schemas=SCHEMAS, future="10 minutes")
TEN = int(datetime(2026, 1, 1, 10, tzinfo=UTC).timestamp())


@pytest.fixture
def edits_of(records):
    """The edits of changes as they come."""

    def read(*rows):
        return edits(records(*(in_wire_format(row, 3) for row in rows), topic="wikimedia"), SCHEMAS, "10 minutes")

    return read


def windows(frame):
    counted = edit_stats(frame, window="60 seconds", slide="30 seconds")
    rows = counted.selectExpr("date_format(window.start, 'HH:mm:ss') AS start", "requested_by", "counts").collect()
    return {(row.start, row.requested_by): row.counts for row in rows}


def per_minute(frame):
    rows = wiki_stats(frame).selectExpr(
        "wiki", "namespace", "date_format(window.start, 'HH:mm') AS start", "edits", "bytes_added", "bytes_removed"
    )
    return {tuple(row)[:3]: tuple(row)[3:] for row in rows.collect()}


def letters_to(records, *rows):
    return reasons(letters_of(records(*(in_wire_format(row, 3) for row in rows))))


class TestEditStats:
    def test_an_edit_counts_in_both_windows_that_hold_its_time(self, edits_of):
        assert windows(edits_of(change(1, at=TEN + 40))) == {("10:00:00", "Human"): 1, ("10:00:30", "Human"): 1}

    def test_a_window_begins_with_its_first_second_and_ends_before_the_next(self, edits_of):
        assert windows(edits_of(change(1, at=TEN), change(2, at=TEN + 29), change(3, at=TEN + 30))) == {
            ("09:59:30", "Human"): 2,
            ("10:00:00", "Human"): 3,
            ("10:00:30", "Human"): 1,
        }

    def test_bots_and_humans_are_counted_apart(self, edits_of):
        counted = windows(edits_of(change(1, at=TEN, bot=True), change(2, at=TEN, bot=True), change(3, at=TEN)))
        assert counted[("10:00:00", "Bot")] == 2
        assert counted[("10:00:00", "Human")] == 1

    def test_an_event_that_comes_twice_counts_once(self, edits_of):
        assert windows(edits_of(change(1, at=TEN), change(1, at=TEN), change(2, at=TEN)))[("10:00:00", "Human")] == 2

    def test_what_is_no_edit_counts_nowhere(self, edits_of):
        assert (
            windows(edits_of(*(change(number, at=TEN, kind=kind) for number, kind in enumerate(["new", "log", "categorize", "142"])))) == {}
        )

    def test_events_without_an_id_are_each_their_own(self, edits_of):
        meta = {"id": "", "dt": "", "domain": ""}
        same = [change(number, at=TEN, meta=meta) for number in (1, 2)]
        assert windows(edits_of(*same))[("10:00:00", "Human")] == 2


class TestWikiStats:
    def test_edits_and_bytes_per_wiki_namespace_and_minute(self, edits_of):
        counted = per_minute(
            edits_of(
                change(1, at=TEN, grown=100),
                change(2, at=TEN + 59, grown=-30),
                change(3, at=TEN + 60, grown=5),
                change(4, at=TEN, namespace=1, grown=0),
                change(5, at=TEN, wiki="dewiki", grown=-1),
            )
        )
        assert counted == {
            ("enwiki", 0, "10:00"): (2, 100, 30),
            ("enwiki", 0, "10:01"): (1, 5, 0),
            ("enwiki", 1, "10:00"): (1, 0, 0),
            ("dewiki", 0, "10:00"): (1, 0, 1),
        }

    def test_an_edit_of_unknown_or_impossible_size_counts_without_bytes(self, edits_of):
        lengths = [None, {"old": None, "new": 5}, {"old": -5, "new": 5}, {"old": 5, "new": 2**41}, {"old": -(2**63), "new": 2**63 - 1}]
        rows = [change(number, at=TEN, wiki=f"wiki {number}", length=length) for number, length in enumerate(lengths)]
        assert per_minute(edits_of(*rows)) == {(f"wiki {number}", 0, "10:00"): (1, 0, 0) for number in range(len(lengths))}


class TestChanges:
    def test_every_change_is_kept_with_the_fields_of_every_version(self, records):
        values = [in_wire_format(change(1, at=TEN, kind="log"), 3), in_wire_format(change(2, at=TEN, schema_uri="/v2"), 4, V2), b"rubbish"]
        rows = changes(records(*values, topic="wikimedia"), SCHEMAS).orderBy("kafka_offset").collect()
        assert [(row.kafka_offset, row.type, str(row.date), row.schema_uri, row.meta.id) for row in rows] == [
            (0, "log", "2026-01-01", None, "id-1"),
            (1, "edit", "2026-01-01", "/v2", "id-2"),
        ]

    def test_a_change_without_a_time_goes_by_the_day_that_kafka_took_it(self, records):
        (row,) = changes(records(in_wire_format(change(1, at=2**60), 3)), SCHEMAS).collect()
        assert (row.changed_at, str(row.date), row.timestamp) == (None, "2026-01-01", 2**60)

    def test_a_field_named_like_a_column_of_the_archive_gets_another_name(self, records):
        import json

        schema = json.loads(V1)
        schema["fields"].append({"name": "Date", "type": ["null", "string"], "default": None})
        dated = json.dumps(schema)
        (row,) = changes(records(in_wire_format(change(1, at=TEN, Date="today"), 5, dated)), WriterSchemas(V1, {3: V1, 5: dated})).collect()
        assert (row.event_Date, str(row.date)) == ("today", "2026-01-01")


class TestUnusable:
    def test_what_is_counted_or_only_archived_is_fine(self, records):
        assert letters_to(records, *(change(1, at=TEN, kind=kind) for kind in ("edit", "log", "142"))) == {}

    def test_an_edit_of_the_first_or_last_possible_second_has_a_time(self, records):
        found = letters_to(records, change(1, at=0), change(2, at=YEAR_10000 - 1))
        assert found == {1: "timestamp is in the future; archived all the same"}

    def test_an_edit_of_no_possible_time_is_a_dead_letter_and_counts_nowhere(self, records, edits_of):
        rows = [change(number, at=at) for number, at in enumerate([-1, YEAR_10000, 10_000_000_000_000, 2**62])]
        reason = "an edit without bot, namespace, timestamp or wiki; archived all the same"
        assert letters_to(records, *rows) == dict.fromkeys(range(len(rows)), reason)
        assert windows(edits_of(*rows)) == {}

    @pytest.mark.parametrize("field", ["bot", "namespace", "wiki"])
    def test_an_edit_that_lacks_a_field_is_a_dead_letter_and_counts_nowhere(self, records, field):
        written = nullable(field)
        schemas = WriterSchemas(V1, {5: written})
        edit = records(in_wire_format(change(1, at=TEN, **{field: None}), 5, written))
        assert reasons(unusable(edit, schemas, "10 minutes")) == {
            0: "an edit without bot, namespace, timestamp or wiki; archived all the same"
        }
        assert edits(edit, schemas, "10 minutes").count() == 0

    def test_a_change_in_the_future_of_its_record_is_a_dead_letter_and_counts_nowhere(self, records, edits_of):
        rows = [change(number, at=TEN + 7200 + 600 + number % 2, kind=kind) for number, kind in enumerate(["edit", "edit", "log", "log"])]
        assert letters_to(records, *rows) == dict.fromkeys([1, 3], "timestamp is in the future; archived all the same")
        assert [row.event_id for row in edits_of(*rows).collect()] == ["id-0"]
        assert changes(records(*(in_wire_format(row, 3) for row in rows)), SCHEMAS).count() == len(rows)

    def test_an_edit_with_a_text_of_negative_length_is_a_dead_letter_and_counts_nowhere(self, records):
        value = in_wire_format(change(1, at=TEN, title="abc"), 3)
        frame = records(value.replace(b"\x06abc", b"\x99\xc2\x9de"), topic="wikimedia")
        assert reasons(letters_of(frame)) == {0: "broken, or not what its schema says, id 3"}
        assert edits(frame, SCHEMAS, "10 minutes").count() == 0

    def test_a_change_with_a_text_that_is_not_utf8_is_a_dead_letter_and_counts_nowhere(self, records):
        meta = {"id": "@", "dt": "", "domain": ""}
        texts = [{"wiki": "@"}, {"user": "@"}, {"title": "@"}, {"comment": "@"}, {"type": "@"}, {"meta": meta}]
        values = [in_wire_format(change(1, at=TEN, **text), 3) for text in texts]
        wikis = [values[0].replace(b"@", byte) for byte in (b"\x80", b"\x81")]  # U+FFFD would be the key of both
        frame = records(*wikis, *(value.replace(b"@", b"\xff") for value in values[1:]), topic="wikimedia")
        assert reasons(letters_of(frame)) == dict.fromkeys(range(7), "a text in it is not UTF-8, id 3")
        assert edits(frame, SCHEMAS, "10 minutes", extra_fields=("user",)).count() == changes(frame, SCHEMAS).count() == 0

    def test_what_cannot_be_read_keeps_its_bytes_and_its_place(self, records):
        good = in_wire_format(change(1, at=TEN), 3)
        (letter,) = letters_of(records(good, good[:20], good, topic="wikimedia")).collect()
        headers = {header.key: bytes(header.value).decode() for header in letter.headers}
        assert bytes(letter.value) == good[:20]
        assert (headers["topic"], headers["offset"]) == ("wikimedia", "1")
        assert headers["reason"] == "broken, or not what its schema says, id 3"
