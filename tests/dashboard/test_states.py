"""Which state a result topic is in, and how times and numbers read."""

from datetime import UTC, datetime, timedelta

import pytest
from messages import absent
from running import RETRY_SECONDS
from streamlit.testing.v1 import AppTest

from dashboard import formats
from dashboard.reading.states import STALE_AFTER, State, state_of
from infrastructure.kafka.follower import Snapshot

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
ROWS = ({"count": 1},)


@pytest.mark.parametrize(
    ("snapshot", "state"),
    [
        ({}, State.CONNECTING),
        ({"error": "no Kafka answers"}, State.UNREACHABLE),
        ({"is_read": True}, State.EMPTY),
        ({"is_read": True, "newest_record_at": NOON}, State.EMPTY),
        ({"is_read": True, "rows": ROWS, "newest_record_at": NOON - STALE_AFTER}, State.LIVE),
        ({"is_read": True, "rows": ROWS, "newest_record_at": NOON - STALE_AFTER - timedelta(seconds=1)}, State.STALE),
        ({"is_read": True, "rows": ROWS, "newest_record_at": NOON, "error": "no Kafka answers"}, State.UNREACHABLE),
        ({"is_read": True, "rows": ROWS, "newest_record_at": NOON + timedelta(hours=1)}, State.LIVE),
    ],
)
def test_state_of_a_result_topic_at_noon(snapshot, state):
    assert state_of(Snapshot("kafka", "topic", **snapshot), NOON) is state


def test_rows_from_before_the_connection_was_lost_are_called_so():
    def script():
        from datetime import UTC, datetime, timedelta

        from dashboard.reading import states
        from infrastructure.kafka.follower import Snapshot

        noon = datetime(2026, 11, 21, 12, tzinfo=UTC)
        lost_at = noon - timedelta(seconds=90)
        states.show_state(
            Snapshot("kafka", "topic", is_read=True, rows=({"count": 1},), error="no Kafka answers, [a](b)", failing_since=lost_at),
            noon,
            "",
        )

    (message,) = AppTest.from_function(script, default_timeout=RETRY_SECONDS).run().error

    assert absent(message.value, "No Kafka answers", "1 min", r"\[a\]\(b\)") == []


def test_an_error_that_the_head_of_the_page_tells_is_not_repeated_for_a_part():
    def script():
        from dashboard.reading import states
        from infrastructure.kafka.follower import Snapshot

        cameras = Snapshot("kafka", "cameras", error="no topic cameras")
        states.show_problem(cameras, Snapshot("kafka", "counts", is_read=True))
        states.show_problem(cameras, Snapshot("kafka", "counts", error="no Kafka answers"))

    (caption,) = AppTest.from_function(script, default_timeout=RETRY_SECONDS).run().caption

    assert caption.value == ":red[Not current:] no topic cameras"


def test_only_what_could_be_markup_is_escaped():
    assert formats.plain("[a](b) *c* $d$ :e: f_g") == r"\[a\]\(b\) \*c\* \$d\$ \:e\: f\_g"
    other = "\N{LEFT DOUBLE QUOTATION MARK}हिन्दी\N{RIGHT DOUBLE QUOTATION MARK} \N{EN DASH} 5 €"
    assert formats.plain(other) == other, "Markdown shows a backslash before these"


def test_windows_clocks_and_counts():
    lengths = timedelta(hours=1), timedelta(seconds=20), timedelta(days=1)
    assert [formats.window(NOON, NOON + length) for length in lengths] == [
        "21 Nov, 12:00\N{EN DASH}13:00",
        "21 Nov, 12:00:00\N{EN DASH}12:00:20",
        "21 Nov, 12:00\N{EN DASH}22 Nov, 12:00",
    ]
    assert formats.clock(NOON) == "2026-11-21 12:00:00 UTC"
    assert [formats.several(number, "value", "values") for number in (0, 1, 1_234)] == ["0 values", "1 value", "1,234 values"]
