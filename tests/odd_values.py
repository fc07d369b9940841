"""Values of source topics as Hypothesis makes them, whole and damaged ones: the same in each run."""

import json
import re
from functools import reduce

from avro import change, in_wire_format
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

COUNT = 400

odd_texts = st.sampled_from(["#1e9999999", "NaN", "x" * 300, "\ud800", "\x00", "a\u0301", "00:00:01", "-290308-12-22T00:00:00Z"])
odd_numbers = st.sampled_from([10**38, 10**400, 1e400, 1e-400, 10.1000000001, 2**63, *(f"#{text}" for text in ("1e2", "-0.0E-400"))])
nested = st.integers(2, 900).map(lambda levels: reduce(lambda inner, _: [inner], range(levels), 0))
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5) | odd_texts | odd_numbers | nested,
    lambda children: st.lists(children, max_size=2) | st.dictionaries(st.text(max_size=3), children, max_size=2),
    max_leaves=4,
)


def paths(value, path=()):
    """The path to each thing within a JSON value, and to itself."""
    yield path
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield from paths(inner, (*path, key))


def replaced(value, path, other):
    """`value` with `other` at the path."""
    return {**value, path[0]: replaced(value[path[0]], path[1:], other)} if path else other


@st.composite
def json_of(draw, whole):
    """JSON of such a value; one time in three something in it, or all of it, is anything else."""
    value = draw(whole)
    if draw(st.integers(1, 3)) == 2:
        value = replaced(value, draw(st.sampled_from(list(paths(value)))), draw(anything))
    # A text after # is a number as another program writes it; and halves of surrogate pairs as they are.
    text = json.dumps(value, ensure_ascii=draw(st.booleans()))
    return re.sub(r'"#([^"]*)"', r"\1", text).encode(errors="surrogatepass")


@st.composite
def damaged(draw, whole):
    """Every other value whole; in the others a byte is another one, or some are missing, or are there twice."""
    value = draw(whole)
    first, last = sorted((draw(st.integers(0, len(value))), draw(st.integers(0, len(value)))))
    return {
        "cut": value[:first],
        "changed": value[:first] + draw(st.binary(min_size=1, max_size=1)) + value[first + 1 :],
        "missing": value[:first] + value[last:],
        "twice": value[:last] + value[first:],
        "followed": value + draw(st.sampled_from([value, b"}", b"]", b",", b" // x", b"\x00", b"\n", b"  "])),
        "preceded": draw(st.sampled_from([b"\xef\xbb\xbf", b"\xff", b" ", b"["])) + value,
        "quoted": value.replace(b'"', b"'"),
    }.get(draw(st.sampled_from(["cut", "changed", "missing", "twice", "followed", "preceded", "quoted", *["whole"] * 7])), value)


times = st.sampled_from(
    [
        "2026-01-01T10:00:00.000Z",
        "2026-01-01T10:00:00+01:00",
        "2026-01-01T10:00:00Z",
        "yesterday",
        "0000",
        None,
        "00:00:01",
        "2017",
        "1969-12-31T23:59:59Z",
        "-290308-12-22T00:00:00Z",
    ]
)
cameras = st.fixed_dictionaries(
    {"last_event": st.fixed_dictionaries({"has_person": st.sampled_from([True, True, False]), "start_time": times})},
    optional={"device_id": st.text(max_size=3) | st.just("x" * 256), "is_online": st.booleans(), "activity_zones": st.just([])},
)
homes = st.dictionaries(st.text(max_size=2), cameras, min_size=1, max_size=3)
documents = json_of(st.fixed_dictionaries({"devices": st.fixed_dictionaries({"cameras": homes})}))

milliseconds = st.integers(-(10**12), 2 * 10**12) | st.sampled_from([2**53, 2**63, 1_700_000_000_000.5, "1700000000000"])
amounts = st.sampled_from([10.1, 0, -5, 1e9, 1e10, 1e300, 12.345, "12.5", 10.0, 10**30]) | st.sampled_from(
    ["#1e2", "#-1.05E+1", "#0E-8", "#12.5e-3", "#1e002", "#1.00000000000000001e2", "#12.50" + "0" * 40 + "1", "#1e-400", "#1e9999999"]
)
rides = {
    "lpep_pickup_datetime": milliseconds,
    "PULocationID": st.sampled_from([74, 9999, -1, 2**31, 2**40]),
    "passenger_count": st.integers(-(2**63), 2**63 - 1) | st.sampled_from(["#2.0", "#2e0", "#1.5e0", "#9007199254740993e0"]),
    **dict.fromkeys(("trip_distance", "fare_amount", "tip_amount", "total_amount"), amounts),
}
trips = json_of(st.fixed_dictionaries({"lpep_dropoff_datetime": milliseconds}, optional=rides))

longs = st.integers(-(2**63), 2**63 - 1)
changes = st.builds(
    lambda number, at, kind, length, schema_id, text: in_wire_format(
        change(number, at=at, kind=kind, length=length, title=text, wiki=text), schema_id
    ),
    number=st.integers(0, 5),
    at=st.just(1_767_225_600) | longs,
    kind=st.sampled_from(["edit", "edit", "edit", "log"]),
    length=st.none() | st.fixed_dictionaries({"old": st.none() | longs, "new": st.none() | longs}),
    schema_id=st.sampled_from([3, 3, 3, 77]),
    text=st.text(max_size=5),
)


def made(strategy):
    """Examples of it; and an empty value, and none."""
    found = [None, b""]

    @settings(max_examples=COUNT, phases=[Phase.generate], derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def collect(value):
        found.append(value)

    collect()
    return found
