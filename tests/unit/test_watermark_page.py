"""docs/watermark.html by its rules: records in, watermarks and outcomes out. Its answers are Spark's, in the cases of watermark_cases.py."""

import re
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from auditing import result as audited_result
from watermark_cases import CASES, KINDS, PAGE, answer_of_page, as_stream, played, read_answers, run_in_page

from audit.audited import Facts, Table
from audit.reading.checkpoints import stretches
from audit.recount.lateness import IN_TIME, LATE
from audit.recount.recount import Recount
from contract.checkpoints.contents import Batch

MOST_BYTES = 100_000
NEW_YEAR = datetime(2026, 1, 1)  # noqa: DTZ001 - as DuckDB has it, in UTC
TOPIC = audited_result("nest-camera-stats").topic
EVENTS = Table("events", TOPIC, Facts("events", TOPIC.name, ""), "time", ("time",), ("time",), "10 minutes", "")
CLOCK = "14:00"
SETTINGS = {"branches": 2, "delay": 10, "skew": 7 * 24 * 60, "judged": "event", "pauses": False}


def minutes(time):
    return int(time[:2]) * 60 + int(time[3:])


def text(time):
    return time and f"{time // 60:02}:{time % 60:02}"


def stream(*batches, **settings):
    """Each batch is a list of texts, NAME PARTITION TIME; `no event` as the time is a record that is none."""
    of_batches = []
    for batch in batches:
        parts = [record.split(maxsplit=2) for record in batch]
        of_batches.append(
            [
                {"name": name, "partition": int(partition), "time": 0 if time == "no event" else minutes(time), "clock": minutes(CLOCK)}
                | {"isBroken": time == "no event"}
                for name, partition, time in parts
            ]
        )
    return SETTINGS | settings | {"batches": of_batches}


def play(*batches, **settings):
    (result,) = played([stream(*batches, **settings)])
    return result


def outcomes(result):
    return {name: one["outcome"] for name, one in result["events"].items()}


def after(result):
    """The query's watermark after each batch."""
    return [text(batch["after"]) for batch in result["batches"]]


def hours(result):
    """Events and closing batch of each hour."""
    return {text(window["start"]): (len(window["names"]), window["final"]) for window in result["windows"]}


def test_the_query_has_the_watermark_of_its_slowest_partition():
    result = play(["A 0 10:30", "B 1 12:00"], ["C 0 11:00"])
    assert [[text(one) for one in batch["own"]] for batch in result["batches"]] == [["10:20", "11:50"], ["10:50", "11:50"]]
    assert after(result) == ["10:20", "10:50"]


def test_one_watermark_for_the_stream_follows_the_fastest_partition():
    assert after(play(["A 0 10:30", "B 1 12:00"], branches=1)) == ["11:50"]


def test_an_idle_partition_holds_the_watermark_back_by_the_skew_and_no_more():
    assert after(play(["A 0 10:30"], ["B 0 12:00"], skew=60)) == ["09:20", "10:50"]


def test_the_watermark_never_goes_back():
    assert after(play(["A 0 10:30", "B 1 10:30"], ["C 0 10:00", "D 1 10:00"], [])) == ["10:20"] * 3


def test_an_event_at_the_watermark_of_the_batch_before_its_own_is_too_late():
    result = play(["A 0 10:30"], [], ["B 0 10:20", "C 0 10:25"], branches=1)
    assert outcomes(result) == {"A": "in time", "B": "too late", "C": "late"}


def test_an_event_is_late_if_an_earlier_batch_has_a_newer_one_of_its_partition():
    result = play(["A 0 10:30", "B 1 10:40"], ["C 0 10:30", "D 0 10:25", "E 1 10:39"])
    assert outcomes(result) == {"A": "in time", "B": "in time", "C": "in time", "D": "late", "E": "late"}


def test_the_batch_after_does_not_yet_drop_by_a_watermark():
    assert outcomes(play(["A 0 10:30"], ["B 0 10:00"], branches=1))["B"] == "late"


def test_a_stream_that_pauses_drops_by_the_newest_watermark():
    assert outcomes(play(["A 0 10:30"], ["B 0 10:20", "C 0 10:25"], branches=1, pauses=True)) == {
        "A": "in time",
        "B": "too late",
        "C": "late",
    }


def test_a_batch_does_not_make_its_own_events_too_late():
    assert outcomes(play(["A 0 13:00", "B 0 09:00"], branches=1, pauses=True)) == {"A": "in time", "B": "in time"}


def test_a_query_that_only_counts_drops_what_belongs_to_a_closed_hour():
    batches = ["A 0 11:10"], ["B 0 10:05", "C 0 10:59", "D 0 11:00"]
    assert outcomes(play(*batches, branches=1, judged="window", pauses=True)) == {
        "A": "in time", "B": "too late", "C": "too late", "D": "late",
    }  # fmt: skip
    assert outcomes(play(["A 0 11:05"], batches[1], branches=1, judged="window", pauses=True))["B"] == "late"


def test_an_hour_is_closed_by_the_batch_that_begins_with_a_watermark_at_its_end():
    batches = ["A 0 10:30"], ["B 0 11:10"], ["C 0 11:15"], ["D 0 12:10"]
    assert hours(play(*batches, branches=1)) == {"10:00": (1, 2), "11:00": (2, 4), "12:00": (1, None)}
    assert hours(play(*batches, branches=1, pauses=True)) == {"10:00": (1, 1), "11:00": (2, 3), "12:00": (1, None)}


def test_a_window_counts_only_what_was_not_too_late():
    (window, _) = play(["A 0 10:30"], ["B 0 11:30"], [], ["C 0 10:40"], branches=1)["windows"]
    assert (window["names"], window["counts"]) == (["A"], [1, 1, 1, 1])


@pytest.mark.parametrize(("time", "outcome"), [("14:10", "in time"), ("14:15", "dead letter"), ("no event", "dead letter")])
def test_what_is_ahead_of_its_clock_by_more_than_the_limit_or_is_no_event_is_a_dead_letter(time, outcome):
    result = play([f"A 0 {time}"], branches=1)
    assert outcomes(result) == {"A": outcome}
    assert after(result) == (["14:00"] if outcome == "in time" else [None]), "a dead letter moves no watermark"


def test_the_page_answers_as_spark_does_in_every_case():
    found = list(read_answers())
    assert len(found) == len(KINDS) * CASES == 800
    cases = [(kind, seed, kind.case(seed), line) for kind, seed, line in found]
    results = played([as_stream(kind, case) for kind, _, case, _ in cases])
    for (kind, seed, case, line), result in zip(cases, results, strict=True):
        came = answer_of_page(result).line(kind)
        assert came == line, f"{kind}, case {seed}: {case}\nthe page: {came}\nSpark:    {line}"


def audited(cases, results):
    """The lateness that the audit finds of each event, by case and name, from the events and from the watermarks that the page gives the batches."""
    rows, plans = [], []
    for number, (case, result) in enumerate(zip(cases, results, strict=True)):
        base, ends, batches = NEW_YEAR + timedelta(days=number), Counter(), []
        for index, (events, told) in enumerate(zip(case, result["batches"], strict=True)):
            for event in events:
                which = f"case-{number}", event.partition
                if result["events"][event.name]["outcome"] != "dead letter":
                    rows.append((*which, ends[which], base + timedelta(minutes=event.time), number, event.name))
                ends[which] += 1
            watermark = told["watermark"]
            watermark_ms = 0 if watermark is None else round((base + timedelta(minutes=watermark)).replace(tzinfo=UTC).timestamp() * 1000)
            batches.append(Batch(index, dict(ends), watermark_ms))
        plans += stretches({}, batches, len(batches))
    recount = Recount()
    recount.database.execute(
        'CREATE TABLE events (topic VARCHAR, partition INTEGER, "offset" BIGINT, time TIMESTAMP, number INTEGER, name VARCHAR)'
    )
    recount.database.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", rows)
    recount.judge(EVENTS, plans, 0)
    found = recount.database.execute("SELECT number, name, lateness FROM judged").fetchall()
    return {(number, name): lateness for number, name, lateness in found}


def test_the_audit_finds_the_same_events_too_late():
    some = [(kind, kind.case(seed)) for kind in KINDS if kind.judged == "event" for seed in range(20)]
    results = played([as_stream(kind, case) for kind, case in some])
    of_page = {
        (number, name): LATE if outcome == "too late" else IN_TIME
        for number, result in enumerate(results)
        for name, outcome in outcomes(result).items()
        if outcome != "dead letter"
    }
    assert audited([case for _, case in some], results) == of_page
    assert list(of_page.values()).count(LATE) > 20, "cases without late events prove nothing"


def said(before, now, name):
    """What the page says when `name` was moved so that `before` became `now`."""
    return run_in_page(f"happened(play(input[0]), play(input[1]), input[1], {{name: '{name}'}})", [before, now])


def test_the_page_says_what_happened_and_why():
    first = ["A 0 10:30"], ["B 0 10:20"]
    before = stream(*first, ["C 0 10:25"], branches=1)
    now = stream(*first, ["C 0 10:20"], branches=1)
    assert said(before, now, "C") == (
        "C is too late and dropped: 10:20 is not after 10:20, the watermark with which batch 2 began. Nothing else changes."
    )


def test_the_page_says_what_a_change_does_to_other_events():
    rest = [], ["B 0 10:40", "C 0 10:45"]
    said_now = said(stream(["A 0 10:30"], *rest, branches=1), stream(["A 0 11:00"], *rest, branches=1), "A")
    assert said_now == (
        "A counts in its hour, 11:00 to 12:00: no watermark applies to batch 1 yet. B and C are now too late. The last watermark moves from 10:35 to 10:50."
    )


def test_a_watermark_of_another_day_is_told_as_such():
    assert run_in_page("input.map(clockTime)", [620, 620 - 1440, 620 - 7 * 1440]) == [
        "10:20",
        "10:20, 1 day before",
        "10:20, 7 days before",
    ]


def test_the_page_is_one_small_file_that_loads_nothing():
    html = PAGE.read_text()
    assert len(html.encode()) < MOST_BYTES
    assert "default-src 'none'" in html, "a browser must refuse whatever the page would load"
    assert re.findall(r"""https?:|\bsrc=|\bimport\b|url\(|<link""", html) == []
