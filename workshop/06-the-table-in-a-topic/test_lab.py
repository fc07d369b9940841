from dataclasses import replace

from plain import one_camera
from streaming import at

from infrastructure.settings import Settings
from pipeline.domains.nest import queries

CAMERA_STATS = queries(Settings())[0]
LISTED, UNKNOWN = "camera-1768a05f24a57687", "cam-1"  # data/device_locations.csv: the first is in zip code 10025
SIGHTINGS = (
    [(LISTED, "10:10")],
    [(LISTED, "10:20")],
    [(UNKNOWN, "10:30"), (UNKNOWN, "10:40"), (LISTED, "11:30"), (LISTED, "11:40")],
)
RECORDS = [
    (b"02134 10:00", b'{"count": 5}'),
    (b"94107 10:00", b'{"count": 1}'),
    (b"94107 10:00", b'{"count": 2}'),
    (b"02134 10:00", None),
    (b"94107 11:00", b'{"count": 1}'),
    (b"10025 09:00", None),
]


def expect_equal(came, expected):
    kind = type(expected)
    assert isinstance(came, kind), f"came:      {came!r}\nexpected:  a {kind.__name__}"
    lines, others = _lines(came), _lines(expected)
    assert came == expected, f"came:\n{_marked(lines, others, 'not expected')}\nexpected:\n{_marked(others, lines, 'missing in yours')}"


def _lines(values):
    return [_line(item) for item in (sorted(values.items(), key=str) if isinstance(values, dict) else values)]


def _line(item):
    if not isinstance(item, tuple) or len(item) != 2:
        return repr(item)
    key, value = item
    return f"{key if isinstance(key, str) else repr(key)}  {'tombstone' if value is None else value}"


def _marked(lines, others, mark):
    """The lines, with a mark at those that the others lack; if both have the same lines, at the first that is in another place."""
    if sorted(lines) == sorted(others):
        mark, odd = "another order", [next((line for line, other in zip(lines, others, strict=True) if line != other), None)]
    else:
        odd = [line for line in lines if line not in others]
    return "\n".join(f"  {line}{f'  <- {mark}' if line in odd else ''}" for line in lines) or "  nothing"


def test_the_key_holds_what_tells_two_rows_apart(lab, stream):
    """The product's query writes with your key, in three batches. Rows with the same key replace each other: too few columns lose rows, too many keep rows that should be replaced."""
    key = lab.result_key()
    assert not isinstance(key, str), f"came:      the text {key!r}\nexpected:  a tuple; with one name, it is ({key!r},), with a comma"
    counting = stream(replace(CAMERA_STATS, sink=replace(CAMERA_STATS.sink, key=key)))
    counting.run(*[[one_camera(camera, at(time)) for camera, time in batch] for batch in SIGHTINGS])
    came = sorted((f"{row['zip_code']} {row['window']['start'][11:16]}", row["count"]) for row in counting.table)
    expect_equal(came, [("10025 10:00", 2), ("10025 11:00", 2), ("unknown 10:00", 2)])


def test_the_last_value_of_a_key_is_its_row(lab):
    """Use a dict: setting a key again replaces its value. A value is JSON, in bytes."""
    expect_equal(lab.table(RECORDS[:3]), {b"94107 10:00": {"count": 2}, b"02134 10:00": {"count": 5}})


def test_a_tombstone_deletes_the_row(lab):
    """Its value is None, not an empty string. The key may have no row: then there is nothing to delete."""
    expect_equal(lab.table(RECORDS), {b"94107 10:00": {"count": 2}, b"94107 11:00": {"count": 1}})


def test_compaction_keeps_the_last_record_of_each_key_in_order(lab):
    """A later reader must still learn that a row was deleted: tombstones stay, for a day here. No record changes its offset, so the order is that of the last records."""
    expect_equal(lab.compacted(RECORDS), RECORDS[2:])


def test_the_table_is_the_same_after_compaction_whenever_it_happens(lab):
    """Compaction may come after any record, and a reader may have read a part before it."""
    for length in range(len(RECORDS) + 1):
        came = lab.table([*lab.compacted(RECORDS[:length]), *RECORDS[length:]])
        expect_equal(came, {b"94107 10:00": {"count": 2}, b"94107 11:00": {"count": 1}})
