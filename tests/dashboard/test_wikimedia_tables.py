"""What the Wikimedia page makes of its rows: rows with explicit times in, a list out."""

from datetime import UTC, datetime, timedelta

import pandas as pd

from dashboard import charts
from dashboard.domains import wikimedia
from dashboard.periods import Period
from infrastructure.kafka.follower import Snapshot

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def edits(*rows, length=60):
    """(seconds after noon, requested_by, count) of windows of so many seconds."""
    starts = [NOON + timedelta(seconds=seconds) for seconds, _, _ in rows]
    made = tuple(
        {"start": start, "end": start + timedelta(seconds=length), "requested_by": who, "counts": count}
        for (_, who, count), start in zip(rows, starts, strict=True)
    )
    return wikimedia.edits_of(Snapshot("kafka", "topic", rows=made))


def wikis(*rows):
    """(minutes after noon, wiki, edits, bytes added, bytes removed)."""
    starts = [NOON + timedelta(minutes=row[0]) for row in rows]
    made = tuple(
        {"wiki": wiki, "start": start, "end": start + timedelta(minutes=1), "edits": count, "bytes_added": added, "bytes_removed": removed}
        for (_, wiki, count, added, removed), start in zip(rows, starts, strict=True)
    )
    return wikimedia.wikis_of(Snapshot("kafka", "topic", rows=made))


def listed(frame, *columns):
    return list(frame[list(columns)].itertuples(index=False, name=None))


def points(frame):
    """name -> (seconds after noon, count) of each window, in order."""
    made = [(name, (start - NOON).total_seconds(), count) for name, start, count in listed(frame, "name", "start", "count")]
    return {who: [(seconds, count) for name, seconds, count in made if name == who] for who in dict.fromkeys(name for name, _, _ in made)}


def test_a_window_is_a_row_with_bots_and_humans_whichever_came_first():
    table = edits((30, "Human", 4), (0, "Bot", 1), (0, "Human", 2))
    assert listed(table, "bots", "humans", "edits") == [(1, 2, 3), (0, 4, 4)]


def test_overlapping_windows_stay_apart_and_are_not_added_up():
    over = edits((0, "Bot", 5), (30, "Bot", 7), (60, "Bot", 6), (0, "Human", 1), (30, "Human", 1), (60, "Human", 1))
    assert points(wikimedia.bots_and_humans(over)) == {"humans": [(0, 1), (30, 1), (60, 1)], "bots": [(0, 5), (30, 7), (60, 6)]}


def test_a_window_without_edits_between_others_counts_none():
    over = edits((0, "Bot", 5), (30, "Bot", 7), (120, "Bot", 6))
    assert points(wikimedia.bots_and_humans(over))["bots"] == [(0, 5), (30, 7), (60, 0), (90, 0), (120, 6)]


def test_of_windows_that_begin_together_the_longer_one_is_drawn():
    over = pd.concat([edits((0, "Bot", 5)), edits((0, "Bot", 9), length=90), edits((30, "Bot", 7), (60, "Bot", 6), (120, "Bot", 8))])
    assert points(wikimedia.bots_and_humans(over))["bots"] == [(0, 9), (30, 7), (60, 6), (90, 0), (120, 8)]


def test_a_window_is_whole_when_a_newer_one_begins_after_it():
    table = edits((0, "Bot", 5), (30, "Bot", 7), (60, "Bot", 6), (90, "Bot", 1))
    assert listed(wikimedia.whole(table), "bots") == [(5,), (7,)]


def test_while_no_window_is_whole_there_is_nothing_to_draw():
    assert wikimedia.bots_and_humans(wikimedia.whole(edits((0, "Bot", 5)))).empty


def test_the_busiest_wikis_are_those_of_the_period_with_as_long_before():
    period = Period(pd.Timestamp(NOON + timedelta(minutes=2)), pd.Timestamp(NOON + timedelta(minutes=4)))
    ranking = wikimedia.busiest(
        wikis((0, "enwiki", 90, 0, 0), (1, "enwiki", 3, 0, 0), (2, "dewiki", 7, 0, 0), (3, "enwiki", 2, 0, 0)), period
    )
    assert listed(ranking, "name", "count", "before") == [("dewiki", 7, 0), ("enwiki", 2, 93)]


def test_bytes_are_added_up_over_all_wikis_minute_by_minute():
    minutes = wikimedia.bytes_by_minute(wikis((0, "enwiki", 1, 50, 9), (0, "dewiki", 1, 7, 1), (1, "enwiki", 1, 3, 0)))
    assert listed(minutes, "gained", "lost") == [(57, 10), (3, 0)]


def test_namespaces_of_a_wiki_are_one_row_a_minute():
    assert listed(wikis((0, "enwiki", 1, 50, 9), (0, "enwiki", 4, 1, 1)), "wiki", "edits", "bytes_added") == [("enwiki", 5, 51)]


def test_rows_older_than_a_day_are_left_out():
    assert listed(edits((-24 * 3600, "Bot", 9), (-24 * 3600 + 30, "Bot", 8), (0, "Bot", 7)), "bots") == [(8,), (7,)]


def test_what_was_lost_is_drawn_downwards():
    frame = wikimedia.bytes_by_minute(wikis((0, "enwiki", 1, 50, 9)))
    chart = charts.gains_and_losses(frame, gain="added", loss="removed", title="bytes a minute")
    assert listed(chart["datasets"]["rows"], "gained", "below") == [(50, -9)]
    assert [layer["encoding"]["y"]["field"] for layer in chart["layer"]] == ["gained", "below"]
