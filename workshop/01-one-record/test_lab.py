import json

from text_tables import expect_rows

TOPIC = "nest-logs"
DOCUMENT = """
{"devices": {"cameras": {
  "a": {"device_id": "cam-1", "last_event": {"has_person": true,  "start_time": "2026-01-01T10:10:00.000Z"}},
  "b": {"device_id": "cam-2", "last_event": {"has_person": true,  "start_time": "2026-01-01T10:20:00.000Z"}},
  "c": {"device_id": "cam-3", "last_event": {"has_person": false, "start_time": "2026-01-01T10:30:00.000Z"}}
}}}
"""
EXPECTED = """
device_id  start_time
cam-1      2026-01-01 10:10:00
cam-2      2026-01-01 10:20:00
"""


def document(**cameras):
    return json.dumps({"devices": {"cameras": cameras}}).encode()


def camera(device_id, start_time, **event):
    return {"device_id": device_id, "last_event": {"has_person": True, "start_time": start_time, **event}}


def test_a_document_with_one_camera_gives_one_row(lab, records):
    """`value` is binary, and F.from_json takes text. A map becomes rows of a key and a value by another function."""
    expect_rows(
        lab.sightings(records(document(a=camera("cam-1", "2026-01-01T10:10:00.000Z")))),
        """
        device_id  start_time
        cam-1      2026-01-01 10:10:00
        """,
        start_time="timestamp",
    )


def test_each_camera_that_saw_a_person_gives_a_row(lab, records):
    """`cameras` is a map from a name to a camera. The names differ from home to home, and has_person is what you filter by."""
    expect_rows(lab.sightings(records(DOCUMENT.encode())), EXPECTED)


def test_a_camera_that_does_not_say_whether_it_saw_a_person_gives_no_row(lab, records):
    """has_person can be true, false or null, and last_event can be missing. `where` keeps a row only if its condition is true."""
    value = document(
        a=camera("cam-1", "2026-01-01T10:10:00Z", has_person=None), b={"device_id": "cam-2"}, c=camera("cam-3", "2026-01-01T10:30:00Z")
    )
    expect_rows(
        lab.sightings(records(value)),
        """
        device_id  start_time
        cam-3      2026-01-01 10:30:00
        """,
    )


def test_a_camera_without_an_id_goes_by_its_name_in_the_map(lab, records):
    """F.coalesce returns the first of its arguments that is not null."""
    value = document(porch={"last_event": {"has_person": True, "start_time": "2026-01-01T10:10:00Z"}})
    expect_rows(
        lab.sightings(records(value)),
        """
        device_id  start_time
        porch      2026-01-01 10:10:00
        """,
    )


def test_a_time_with_an_offset_is_the_same_instant(lab, records):
    """DOCUMENT says that start_time is a timestamp: Spark reads the offset too. Do not cut the text."""
    expect_rows(
        lab.sightings(records(document(a=camera("cam-1", "2026-01-01T11:10:00+01:00")))),
        """
        device_id  start_time
        cam-1      2026-01-01 10:10:00
        """,
    )


def test_a_value_that_is_not_a_document_gives_no_row_and_its_neighbours_count(lab, records):
    """One record must not stop the query. F.from_json gives null for what it cannot read, unless you choose mode FAILFAST."""
    good = document(a=camera("cam-1", "2026-01-01T10:10:00Z"))
    expect_rows(
        lab.sightings(records(None, b"not JSON", b'{"devices": 5}', b"{}", good)),
        """
        device_id  start_time
        cam-1      2026-01-01 10:10:00
        """,
    )
