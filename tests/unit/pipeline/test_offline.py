"""When a camera is offline, back or flapping: documents with explicit times in, changes out; and a model in ten lines, whatever the order."""

from hypothesis import given
from hypothesis import strategies as st
from plain import camera_changes

from pipeline.state.offline import BACK, FLAPPING, OFFLINE, Camera, Limits, Report, advance, next_change_ms

MINUTE = 60_000
LIMITS = Limits(silence_ms=10 * MINUTE, forget_ms=1000 * MINUTE)


def seen(minute, *, online=True, sighting=None):
    return Report(round(minute * MINUTE), online, sighting)


def changes(*documents, until):
    """(state, since, alert) of each change, in minutes."""
    _, found = advance(Camera(waiting=frozenset(documents)), until * MINUTE, LIMITS)
    return [
        ("forgotten",) if one.status is None else ("online" if one.status.is_online else "offline", one.status.since_ms / MINUTE, one.alert)
        for one in found
    ]


def test_a_camera_is_online_from_its_first_document_and_no_alert():
    assert changes(seen(0), seen(9), until=18) == [("online", 0, None)]


def test_a_document_counts_when_the_watermark_has_passed_it():
    assert changes(seen(5), until=4.99) == []
    assert changes(seen(5), until=5) == [("online", 5, None)]


def test_silence_is_longer_than_the_limit():
    assert changes(seen(0), seen(10), until=19.99) == [("online", 0, None)], "ten minutes are not more than ten minutes"
    assert changes(seen(0), seen(10.01), until=11) == [("online", 0, None), ("offline", 0, OFFLINE), ("online", 10.01, BACK)]


def test_a_silent_camera_is_offline_since_it_was_last_seen():
    assert changes(seen(0), seen(3), until=13) == [("online", 0, None), ("offline", 3, OFFLINE)]


def test_a_camera_that_says_so_is_offline_at_once_and_its_silence_changes_nothing():
    assert changes(seen(0), seen(1, online=False), until=60) == [("online", 0, None), ("offline", 1, OFFLINE)]


def test_a_camera_keeps_when_it_was_first_heard_of_until_it_is_forgotten():
    _, found = advance(Camera(waiting=frozenset([seen(3), seen(4, online=False), seen(2000)])), 2000 * MINUTE, LIMITS)
    assert [change.status and change.status.first_ms / MINUTE for change in found] == [3, 3, None, 2000]


def test_a_camera_that_begins_offline_is_told():
    assert changes(seen(0, online=False), until=0) == [("offline", 0, OFFLINE)]


def test_a_camera_that_is_not_heard_of_is_forgotten_and_then_begins_anew():
    assert changes(seen(0), seen(1001), until=1001) == [
        ("online", 0, None),
        ("offline", 0, OFFLINE),
        ("forgotten",),
        ("online", 1001, None),
    ]


def flaps(*minutes):
    """A camera that goes offline at these minutes, each time for half a minute, and is heard every minute otherwise."""
    return [seen(0), *(one for minute in minutes for one in (seen(minute, online=False), seen(minute + 0.5)))]


def test_four_times_offline_in_ten_minutes_are_one_incident_that_ends_as_flapping():
    camera = Camera(waiting=frozenset(flaps(1, 3, 5, 7, 9)))
    _, found = advance(camera, 10 * MINUTE, LIMITS)
    alerts = {one.status.incident_ms: one.alert for one in found if one.alert}
    assert alerts == {MINUTE: FLAPPING}
    assert [one.alert for one in found if one.alert] == [OFFLINE, BACK, OFFLINE, BACK, OFFLINE, BACK, FLAPPING], "and then nothing more"


def test_four_times_in_more_than_ten_minutes_are_no_flapping():
    assert FLAPPING not in [alert for *_, alert in changes(*flaps(1, 4, 7, 11), until=12)]


def test_a_camera_that_was_steady_for_ten_minutes_begins_a_new_incident():
    documents = [*flaps(1), seen(6), seen(11), *flaps(11.51)[1:]]
    _, found = advance(Camera(waiting=frozenset(documents)), 12 * MINUTE, LIMITS)
    assert [one.status.incident_ms for one in found if one.alert == OFFLINE] == [MINUTE, round(11.51 * MINUTE)]


def test_ten_minutes_after_the_last_change_the_incident_is_still_the_same():
    _, found = advance(Camera(waiting=frozenset([*flaps(1), seen(6), seen(11), *flaps(11.5)[1:]])), 12 * MINUTE, LIMITS)
    assert [one.status.incident_ms for one in found if one.alert == OFFLINE] == [MINUTE, MINUTE]


def test_the_newest_sighting_is_kept_whatever_order_documents_come_in():
    camera, _ = advance(Camera(waiting=frozenset({seen(1, sighting=50), seen(2, sighting=40), seen(3)})), 3 * MINUTE, LIMITS)
    assert camera.status.sighting_ms == 50


def test_of_several_documents_of_one_moment_a_change_tells_the_newest_sighting():
    for others in ([None], [1, 2, 3], [None, 7, 8, 9]):
        documents = {seen(1, sighting=sighting) for sighting in [*others, 10]}
        _, (online, *_) = advance(Camera(waiting=frozenset(documents)), MINUTE, LIMITS)
        assert online.status.sighting_ms == 10, f"of {documents}"


documents_of_a_camera = st.lists(st.builds(seen, st.integers(0, 90), online=st.sampled_from([True, True, True, False])), max_size=25)


@given(documents_of_a_camera, st.lists(st.integers(0, 100), min_size=1, max_size=8), st.randoms())
def test_any_order_and_any_batches_give_what_the_model_gives(documents, watermarks, random):
    """As Spark does: after a batch, the watermark rises and later documents are after it; a camera is looked at only for a document or timer."""
    watermarks_ms = [minute * MINUTE for minute in sorted(watermarks)]
    batches = {
        one: random.choice([number for number, until in enumerate([-1, *watermarks_ms[:-1]]) if one.at_ms > until]) for one in documents
    }
    camera, found = Camera(), []
    for number, until_ms in enumerate(watermarks_ms):
        arrived = {one for one, batch in batches.items() if batch == number}
        camera = camera._replace(waiting=camera.waiting | arrived)
        timer_ms = next_change_ms(camera, LIMITS)
        if timer_ms is not None and timer_ms <= until_ms:
            camera, more = advance(camera, until_ms, LIMITS)
            found += [(one.status.is_online, one.status.since_ms) for one in more]
    assert found == camera_changes([one[:2] for one in documents], watermarks_ms[-1], LIMITS.silence_ms)
