"""Which facts count as late, and which of them a watermark dropped that had run ahead: facts and batches in, lateness out."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from auditing import result

from audit.audited import Facts, Table
from audit.reading.checkpoints import Stretch, stretches
from audit.recount.lateness import IN_TIME, LATE, UNKNOWN, WRONGLY_LATE
from audit.recount.recount import Recount
from contract.checkpoints.contents import Batch
from infrastructure.errors import StreamgaugeError

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
A, B, C = ("topic", 0), ("topic", 1), ("topic", 2)
TOPIC = result("nest-camera-stats").topic
EVENTS = Table("events", TOPIC, Facts("events", TOPIC.name, ""), "time", ("time",), ("time",), "10 minutes", "")


def ms(minutes):
    return round((NOON + timedelta(minutes=minutes)).timestamp() * 1000)


YEAR_2099_MS = round(datetime(2099, 1, 1, tzinfo=UTC).timestamp() * 1000)


def judged(partitions, *batches, newest_lost_ms=0):
    """A recount of events. partitions: minutes after noon in order of offset, or those of one record. batches: their ends, and the watermark of the plan."""
    recount = Recount()
    recount.database.execute('CREATE TABLE events (topic VARCHAR, partition INTEGER, "offset" BIGINT, time TIMESTAMP)')
    rows = [
        (*partition, offset, (NOON + timedelta(minutes=one)).replace(tzinfo=None))
        for partition, minutes in partitions.items()
        for offset, many in enumerate(minutes)
        for one in (many if isinstance(many, list) else [many])
    ]
    recount.database.executemany("INSERT INTO events VALUES (?, ?, ?, ?)", rows)
    planned = [
        Batch(number, dict(zip(partitions, ends, strict=True)), watermark_ms) for number, (*ends, watermark_ms) in enumerate(batches)
    ]
    recount.judge(EVENTS, stretches({}, planned, len(planned)), newest_lost_ms)
    return recount


def those(recount, lateness):
    """Partition and offset of the events with that lateness."""
    return recount.database.execute(f'SELECT partition, "offset" FROM judged WHERE lateness = {lateness} ORDER BY ALL').fetchall()


def test_an_event_at_the_watermark_of_the_batch_before_its_own_is_late():
    recount = judged({A: [0, 60, 30, 30.1]}, (2, 0), (2, ms(30)), (4, ms(30)))
    assert (those(recount, LATE), those(recount, IN_TIME)) == ([(0, 2)], [(0, 0), (0, 1), (0, 3)])


def test_an_event_between_two_watermarks_one_of_which_was_its_own_is_not_told():
    recount = Recount()
    recount.database.execute('CREATE TABLE events (topic VARCHAR, partition INTEGER, "offset" BIGINT, time TIMESTAMP)')
    times = [(NOON + timedelta(minutes=one)).replace(tzinfo=None) for one in (0, 1, 60, 61)]
    recount.database.executemany("INSERT INTO events VALUES ('topic', 0, ?, ?)", list(enumerate(times)))
    recount.judge(EVENTS, [Stretch("topic", 0, 0, 4, ms(0), ms(60))], None)
    found = recount.database.execute('SELECT lateness FROM judged ORDER BY "offset"').fetchall()
    assert [lateness for (lateness,) in found] == [LATE, UNKNOWN, UNKNOWN, IN_TIME]


def test_an_event_is_late_when_none_of_its_rows_was_in_time():
    recount = judged({A: [60, 60, 0, 0, 60]}, (1, 0), (1, ms(50)), (5, ms(60)))
    totals = recount.totals(EVENTS)
    assert (totals["events"], totals["late_events"], totals["late_rows"]) == (2, 1, 2)


def test_an_event_that_can_count_nowhere_is_not_missed_when_it_is_late():
    recount = judged({A: [60, 0], B: [0, 30]}, (1, 1, 0), (1, 1, ms(50)), (2, 2, ms(50)))
    totals = recount.totals(replace(EVENTS, counts="partition = 1"))
    assert (totals["events"], totals["rows"], totals["late_rows"]) == (2, 2, 1)


def test_a_watermark_behind_the_events_has_not_run_ahead():
    recount = judged({A: [0, 20, 9, 40], B: [0, 1, 2, 3]}, (2, 2, 0), (2, 2, ms(10)), (3, 3, ms(10)), (4, 4, ms(10)))
    assert (len(those(recount, LATE)), those(recount, WRONGLY_LATE)) == (3, [])


def test_events_in_time_on_their_own_partition_are_wrongly_late_after_one_of_2099():
    # Of partition A the record of 2099 is no event, as it does not count. 25 is in time on B, which has come to 30; 15 is late there too.
    recount = judged({A: [0, 5, 6], B: [0, 30, 25, 15]}, (1, 1, 0), (1, 2, YEAR_2099_MS), (3, 4, YEAR_2099_MS))
    assert those(recount, WRONGLY_LATE) == [(0, 1), (0, 2), (1, 2)]


def test_an_event_exactly_the_delay_behind_its_partition_is_late():
    assert those(judged({A: [0, 30, 20, 20.1]}, (2, 0), (2, YEAR_2099_MS), (4, YEAR_2099_MS)), WRONGLY_LATE) == [(0, 3)]


def test_the_events_of_one_record_do_not_make_one_another_late():
    assert those(judged({A: [0, [60, 1]]}, (1, 0), (1, YEAR_2099_MS), (2, YEAR_2099_MS)), WRONGLY_LATE) == [(0, 1), (0, 1)]


def test_a_watermark_that_ran_ahead_is_told_also_when_time_has_caught_up_with_it():
    recount = judged({A: [0, 30, 300, 301]}, (1, 0), (1, ms(200)), (2, ms(200)), (4, ms(200)), (4, ms(291)))
    assert those(recount, WRONGLY_LATE) == [(0, 1)]


def test_events_count_as_wrongly_late_when_none_of_their_rows_has_counted():
    totals = judged({A: [0, 0, 5, 5]}, (1, 0), (1, YEAR_2099_MS), (4, YEAR_2099_MS)).totals(EVENTS)
    found = (totals["events"], totals["late_events"], totals["wrongly_late_events"])
    assert found == (2, 0, 1), "noon has counted before the watermark ran ahead"


class TestRetention:
    def test_a_watermark_that_what_is_cut_explains_is_right(self):
        recount = judged({A: [20, 5, 40]}, (2, ms(15)), (3, ms(15)), (3, ms(30)), newest_lost_ms=ms(25))
        assert those(recount, WRONGLY_LATE) == []

    def test_one_that_it_cannot_explain_has_run_ahead(self):
        recount = judged({A: [20, 30]}, (1, ms(15)), (1, YEAR_2099_MS), (2, YEAR_2099_MS), newest_lost_ms=ms(25))
        assert those(recount, WRONGLY_LATE) == [(0, 1)]

    @pytest.mark.parametrize("newest_lost_ms", [YEAR_2099_MS + 1, None])
    def test_whether_one_has_that_is_ahead_of_all_that_is_left_is_not_known(self, newest_lost_ms):
        with pytest.raises(StreamgaugeError, match="it is not known whether the dropped rows came too late"):
            judged({A: [20, 30]}, (1, YEAR_2099_MS), (2, YEAR_2099_MS), newest_lost_ms=newest_lost_ms)


def batch(number, watermark_ms=0, **ends):
    return Batch(number, {("topic", int(partition[1:])): end for partition, end in ends.items()}, watermark_ms)


class TestStretches:
    def test_a_record_is_late_by_the_watermark_of_the_batch_before_its_own_and_batches_of_one_watermark_share_a_stretch(self):
        batches = [batch(0, 0, p0=10), batch(1, 500, p0=20), batch(2, 900, p0=30)]
        assert stretches({A: 0}, batches, 2) == [Stretch(*A, 0, 20, 0, 0), Stretch(*A, 20, 30, 500, 500)]

    def test_a_batch_without_records_moves_the_watermark_too(self):
        batches = [batch(0, 0, p0=10), batch(1, 500, p0=10), batch(2, 500, p0=20)]
        assert stretches({A: 0}, batches, 2) == [Stretch(*A, 0, 10, 0, 0), Stretch(*A, 10, 20, 500, 500)]

    def test_the_first_batch_begins_where_the_query_has_started_and_later_partitions_at_0(self):
        batches = [batch(0, 0, p0=10, p1=5), batch(1, 7, p0=10, p1=6, p2=3)]
        found = stretches({A: 4, B: 5}, batches, 1)
        assert found == [Stretch(*A, 4, 10, 0, 0), Stretch(*B, 5, 6, 0, 0), Stretch(*C, 0, 3, 0, 0)]

    def test_the_records_of_the_batch_under_way_are_told_apart(self):
        found = stretches({A: 0}, [batch(0, 0, p0=10), batch(1, 0, p0=20)], 0)
        assert found == [Stretch(*A, 0, 10, 0, 0), Stretch(*A, 10, 20, 0, 0, is_ahead=True)]

    def test_where_batches_are_missing_lateness_is_known_within_the_watermarks_around_them(self):
        batches = [batch(0, 100, p0=10), batch(4, 500, p0=50), batch(5, 600, p0=60)]
        assert stretches({A: 0}, batches, 5) == [
            Stretch(*A, 0, 10, 0, 0),
            Stretch(*A, 10, 50, 100, 500),
            Stretch(*A, 50, 60, 500, 500),
        ]

    def test_before_the_first_batch_that_is_known_nothing_is_certainly_late_but_what_is_before_1970(self):
        assert stretches({A: 0}, [batch(7, 500, p0=50)], 7) == [Stretch(*A, 0, 50, 0, 500)]
