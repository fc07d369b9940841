"""The sessions of a key: events with explicit times in, sessions out; and a model in ten lines, whatever the order and the batches."""

from hypothesis import given
from hypothesis import strategies as st
from plain import sessions_of

from pipeline.state.sessions import Event, KeyState, Session, changed_newest, changed_sessions, grown, joined, still_open

GAP = 5


def event(time, *totals):
    return Session(time, time, totals=totals)


def spans(sessions):
    return [session[:3] for session in sessions]


def test_a_gap_of_exactly_the_limit_continues_a_session_and_a_longer_one_ends_it():
    assert spans(joined([event(0), event(5), event(11)], GAP)) == [(0, 5, 2), (11, 11, 1)]


def test_an_event_between_two_sessions_makes_them_one():
    assert spans(joined([Session(0, 9, 3), Session(14, 30, 4), Session(36, 40)], GAP)) == [(0, 30, 7), (36, 40, 1)]


def test_an_event_within_a_session_does_not_shorten_it():
    assert spans(joined([Session(0, 9, 3), event(4)], GAP)) == [(0, 9, 4)]


def test_totals_leave_out_nulls_and_are_null_without_anything_else():
    totals = [joined([event(0, one), event(1, other)], GAP)[0].totals for one, other in [(1, 2), (None, 2), (1, None), (None, None)]]
    assert totals == [(3,), (2,), (1,), (None,)]


def test_an_event_that_comes_again_changes_nothing_and_another_at_the_same_time_counts():
    state = grown(KeyState(), [Event(0, "a"), Event(0, "a"), Event(1, "a")], 0, GAP)
    assert spans(state.sessions) == [(0, 1, 2)]
    assert grown(state, [Event(0, "a")], 0, GAP) == state
    assert spans(grown(state, [Event(0, "b")], 0, GAP).sessions) == [(0, 1, 3)]


def test_only_sessions_that_have_changed_are_told_and_starts_that_are_gone():
    before = [Session(0, 9, 3), Session(20, 21, 2), Session(40, 40)]
    assert changed_sessions(before, joined([*before, event(16)], GAP)) == {16: Session(16, 21, 3), 20: None}


def test_a_session_is_open_as_long_as_an_event_after_the_watermark_can_join_it():
    state = grown(KeyState(), [Event(0), Event(9), Event(20), Event(21)], 15, GAP)
    assert [len(still_open(state, watermark, GAP).sessions) for watermark in (5, 6, 14, 15, 26, 27)] == [3, 2, 2, 1, 1, 0]
    assert state.seen == {(20, ""), (21, "")}, "no event up to the watermark comes again"


def test_the_newest_session_alone_is_told_and_that_it_is_over():
    before = (Session(0, 9, 3), Session(20, 21, 2))
    assert changed_newest(before, (Session(0, 10, 4), Session(20, 21, 2))) == {}
    assert changed_newest(before, (Session(0, 21, 6),)) == {0: Session(0, 21, 6)}
    assert changed_newest(before, ()) == {20: None}


@given(st.lists(st.integers(0, 90), max_size=25), st.lists(st.integers(0, 100), min_size=1, max_size=8), st.randoms())
def test_any_order_and_any_batches_give_what_the_model_gives(times, watermarks, random):
    """As Spark does: a batch drops what is not after the watermark of the batch before, and timers fire after its events."""
    batches = [[] for _ in watermarks]
    for time in times:
        random.choice(batches).append(time)
    table, newest, state, timer, late_until, accepted = {}, [], KeyState(), None, -1, set()
    for arrived, watermark in zip(batches, sorted(watermarks), strict=True):
        in_time = [time for time in arrived if time > late_until]
        before, state = state, grown(state, map(Event, in_time), watermark, GAP)
        table |= changed_sessions(before.sessions, state.sessions)
        newest += changed_newest(before.sessions, state.sessions).values()
        if timer is None and state.sessions:
            timer = state.sessions[0].last_ms + GAP + 1
        if timer is not None and timer <= watermark:
            before, state = state, still_open(state, watermark, GAP)
            newest += changed_newest(before.sessions, state.sessions).values()
            timer = state.sessions[0].last_ms + GAP + 1 if state.sessions else None
        late_until = watermark
        accepted.update(in_time)
    assert spans(session for _, session in sorted(table.items()) if session) == sessions_of(accepted, GAP)
    last = sessions_of(accepted, GAP)[-1:]
    is_over = not last or last[0][1] + GAP < late_until
    assert spans(session for session in newest[-1:] if session) == ([] if is_over else last)
    assert (timer is None) == (not state.sessions), "nothing stays in the state without a timer that will remove it"
