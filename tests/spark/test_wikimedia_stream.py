"""The Wikimedia queries as streams: edits in overlapping windows, batch after batch, each once, until the watermark closes them."""

from dataclasses import replace

import pytest
from avro import V1, change, in_wire_format
from streaming import at

from infrastructure.settings import Settings
from pipeline.domains import wikimedia
from pipeline.formats.confluent_avro import WriterSchemas

SCHEMAS = WriterSchemas(V1, {3: V1})


@pytest.fixture
def stats(stream):
    """The stream of a query that these settings make."""

    def make(name="wikimedia-edit-stats", settings=None, **changed):
        chosen = settings or Settings()
        by_name = {query.name: query for query in wikimedia.queries(chosen)}
        return stream(replace(by_name[name], **changed), settings=chosen, schemas=SCHEMAS)

    return make


def edit(number, time, **fields):
    return in_wire_format(change(number, at=round(at(time).timestamp()), **fields), 3)


def windows(rows):
    """The start of each window, and the edits by humans."""
    return {row["window"]["start"][11:19]: row["counts"] for row in rows if row["requested_by"] == "Human"}


def test_an_edit_counts_once_in_each_window_whatever_batch_it_comes_in(stats):
    counting = stats()
    _, second = counting.run([edit(1, "10:00:40"), edit(1, "10:00:40")], [edit(1, "10:00:40"), edit(2, "10:01:10")])
    assert windows(second.rows) == {"10:00:30": 2, "10:01:00": 1}
    assert windows(counting.table) == {"10:00:00": 1, "10:00:30": 2, "10:01:00": 1}


def test_bots_and_humans_have_rows_of_their_own(stats):
    counting = stats()
    counting.run([edit(1, "10:00:40", bot=True)], [edit(2, "10:00:40")])
    assert sorted((row["requested_by"], row["counts"]) for row in counting.table) == [("Bot", 1), ("Bot", 1), ("Human", 1), ("Human", 1)]


def test_an_edit_counts_until_the_watermark_of_this_domain_reaches_it(stats, settings_of):
    counting = stats(settings=settings_of(STREAMGAUGE_WIKIMEDIA_WATERMARK="60 seconds", STREAMGAUGE_WATERMARK="1 day"))
    first, second = counting.run([edit(1, "10:02:00")], [edit(2, "10:01:01"), edit(3, "10:01:00")])
    assert first.watermark == at("10:01")
    assert (second.dropped, windows(second.rows)) == (1, {"10:00:30": 1, "10:01:00": 1})


def test_append_writes_a_window_once_when_the_watermark_has_passed_its_end(stats):
    append = stats(mode="append")
    still_open, final, after = append.run([edit(1, "10:00:10")], [edit(2, "10:02:00")], [edit(3, "10:02:01")])
    assert still_open.rows == []
    assert windows(final.rows) == {"09:59:30": 1, "10:00:00": 1}
    assert after.rows == []


def test_runs_over_parts_give_what_one_run_gives_over_all(stats):
    batches = [[edit(number, f"10:00:{number}0"), edit(9, "10:00:05"), edit(number, f"10:00:{number}0")] for number in (0, 2, 4)]
    one_run, parts = stats(), stats()
    one_run.run(*batches)
    for batch in batches:
        parts.run(batch)
    assert windows(one_run.table) == windows(parts.table) == {"09:59:30": 3, "10:00:00": 4, "10:00:30": 1}


def test_the_settings_of_window_and_slide_reach_the_query(stats, settings_of):
    settings = settings_of(STREAMGAUGE_WIKIMEDIA_WINDOW="2 minutes", STREAMGAUGE_WIKIMEDIA_SLIDE="40 seconds")
    (only,) = stats(settings=settings).run([edit(1, "10:02:30")])
    assert [(row["window"]["start"][11:19], row["window"]["end"][11:19]) for row in only.rows] == [
        ("10:00:40", "10:02:40"),
        ("10:01:20", "10:03:20"),
        ("10:02:00", "10:04:00"),
    ]


def test_the_minute_of_a_wiki_and_namespace_adds_up_over_batches(stats):
    counting = stats("wikimedia-wiki-stats")
    counting.run(
        [edit(1, "10:00:10", grown=100), edit(3, "10:00:10", namespace=1), edit(4, "10:00:10", wiki="dewiki")],
        [edit(2, "10:00:50", grown=-30), edit(1, "10:00:10", grown=100)],
    )
    table = {(row["wiki"], row["namespace"]): (row["edits"], row["bytes_added"], row["bytes_removed"]) for row in counting.table}
    assert table == {("enwiki", 0): (2, 100, 30), ("enwiki", 1): (1, 10, 0), ("dewiki", 0): (1, 10, 0)}
