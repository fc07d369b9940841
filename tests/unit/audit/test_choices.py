"""Of which records facts may be taken: none too few, whatever the values are."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import mutations
import pyarrow as pa
import pytest
from auditing import NOON, facts_of, records, result

from audit.recount.recount import Recount, formats_of
from audit.values.choices import Holding
from producers.nest.simulation import Simulation, simulate

MUTATED = 2_500
"""How many values are changed in each way."""
DOCUMENTS = [
    (one.value, datetime.fromtimestamp(one.event_time_ms / 1000, UTC)) for one in simulate(Simulation(NOON, cameras=400, limit=3_000))
]
"""Documents as the API writes them, and their times."""
LETTERS = result("nest-dead-letters").facts
IN_ORDER = json.loads(DOCUMENTS[0][0])


def of_documents(values, clocks=NOON):
    """Records with these values. clocks: one, or that of each."""
    own = clocks if isinstance(clocks, list) else [clocks] * len(values)
    table = records("nest-logs", *values)
    return table.set_column(table.column_names.index("clock"), "clock", pa.array(own, pa.timestamp("ms")))


def chosen(choice, table):
    """The offsets of the chosen records."""
    mask = choice.of(table, Recount().database)
    return table.filter(mask)["offset"].to_pylist()


def facts_from(facts, table):
    """The facts, in an order that is the same each time."""
    recount = Recount()
    recount.load([facts], [table])
    rows = recount.database.sql(f"FROM {facts.name} ORDER BY ALL").fetchall()
    return [[sorted(value) if isinstance(value, list) else value for value in row] for row in rows]


def mutated():
    random = Random(1)
    values = [value for value, _ in DOCUMENTS]
    yield from mutations.of_json([*map(json.loads, values[:300]), *mutations.DOCUMENTS], MUTATED, seed=1)
    for _ in range(MUTATED):
        yield mutations.changed_bytes(random, random.choice(values))
    for _ in range(4 * MUTATED):
        yield mutations.retyped(random, random.choice(values))


def test_no_record_is_left_out_of_which_something_is_taken():
    random = Random(2)
    values = list(mutated())
    near = [NOON + timedelta(minutes=random.uniform(-20, 30), milliseconds=random.randrange(1000)) for _ in values]
    table = of_documents(values, [None if random.random() < 0.05 else clock for clock in near])
    for facts in (facts_of("nest-camera-stats"), LETTERS):
        of_all = facts_from(replace(facts, only=None), table)
        assert facts_from(facts, table) == of_all
        assert len(of_all) > 1_000
    assert len(values) - len(chosen(LETTERS.only, table)) > 2_000


def test_documents_as_the_api_writes_them_are_not_read_for_dead_letters():
    table = of_documents(*map(list, zip(*DOCUMENTS, strict=True)))
    assert len(chosen(LETTERS.only, table)) < 0.2 * len(DOCUMENTS)


def compact(value):
    return json.dumps(value, separators=(",", ":"))


def changed(**camera):
    """A document in order but for these fields of its camera, as a JSON text each."""
    ((name, own),) = IN_ORDER["devices"]["cameras"].items()
    texts = {**{field: compact(value) for field, value in own.items()}, **camera}
    document = {**IN_ORDER, "devices": {**IN_ORDER["devices"], "cameras": {name: "@"}}}
    text = "{" + ",".join(f'"{field}":{value}' for field, value in texts.items()) + "}"
    return compact(document).replace('"@"', text).encode()


@pytest.mark.parametrize(
    ("value", "is_read"),
    [
        (changed(), False),
        (changed(where_name='"Küche 😀"'), False),
        (changed(where_name='"K\\u00fcche"'), True),
        (changed(where_name='"\\u0000"'), True),
        (changed(where_name='"\t"'), True),
        (changed(where_name="3"), True),
        (changed(where_name="null"), True),
        (changed(device_id=f'"{"x" * 256}"'), True),
        (changed(is_online='"true"'), True),
        (changed(is_online="1"), True),
        (changed(last_is_online_change='"2024-02-28T23:59:59Z"'), False),
        (changed(last_is_online_change='"2023-02-29T23:59:59Z"'), True),
        (changed(last_is_online_change='"2026-04-31T23:59:59Z"'), True),
        (changed(last_is_online_change='"2026-01-31T24:00:00Z"'), True),
        (changed(last_is_online_change='"1969-12-31T23:59:59Z"'), True),
        (changed(more="1"), True),
        (changed() + b"\n", True),
        (changed() + b"{}", True),
        (b" " + changed(), True),
        (changed()[:-1], True),
        (changed(where_name='"\u2028"').replace("\u2028".encode(), b"\xed\xa0\x80"), True),
        (changed(where_name='"x"').replace(b'"x"', b'"\xc0\xaf"'), True),
        (compact({**IN_ORDER, "structures": {"n" * 50_001: {"structure_id": "s", "name": "n"}}}).encode(), True),
        (None, True),
    ],
)
def test_a_value_is_read_unless_it_has_the_form(value, is_read):
    assert chosen(LETTERS.only, of_documents([value])) == [0] * is_read


def test_a_document_with_two_devices_of_one_type_is_read():
    (camera,) = IN_ORDER["devices"]["cameras"].values()
    devices = {**IN_ORDER["devices"], "cameras": {"a": camera, "b": camera}}
    assert chosen(LETTERS.only, of_documents([compact({**IN_ORDER, "devices": devices}).encode()])) == [0]


@pytest.mark.parametrize(("start_time", "is_read"), [("12:09:59.999", False), ("12:10:00", True), ("12:10:00.001", True)])
def test_an_event_that_may_be_too_far_in_the_future_is_read(start_time, is_read):
    event = next(
        event
        for value, _ in DOCUMENTS
        for camera in json.loads(value)["devices"].get("cameras", {}).values()
        if (event := camera.get("last_event"))
    )
    value = changed(last_event=compact({**event, "start_time": f"2026-01-01T{start_time}Z"}))
    assert chosen(LETTERS.only, of_documents([value])) == [0] * is_read
    assert chosen(LETTERS.only, of_documents([value], clocks=None)) == [0]


def test_of_no_records_none_is_chosen():
    for facts in (facts_of("nest-camera-stats"), LETTERS):
        assert chosen(facts.only, of_documents([])) == []


def test_a_line_of_a_file_that_is_no_document_is_read():
    table = of_documents([changed()])
    with_problem = table.set_column(table.column_names.index("problem"), "problem", pa.array(["the line is too long"]))
    assert chosen(LETTERS.only, with_problem) == [0]


def test_values_that_hold_a_pattern_or_may_spell_it_in_another_way_are_chosen():
    values = [b'{"a":1}', b'{"a": 1}', b'{"b":1}', rb'{"\u0061":1}', b"a", None]
    assert chosen(Holding(r'a"\s*:\s*1'), of_documents(values)) == [0, 1, 3]


def test_records_are_chosen_only_where_that_saves_a_step():
    sightings, reports, archive = facts_of("nest-camera-stats"), facts_of("nest-camera-status"), facts_of("nest-archive")
    read = sightings.documents
    assert formats_of([sightings, LETTERS]) == {(read, sightings.only): [sightings], (read, LETTERS.only): [LETTERS]}
    assert formats_of([sightings, LETTERS, archive]) == {(read, sightings.only): [sightings], (read, None): [LETTERS, archive]}
    assert formats_of([reports, LETTERS]) == {(read, None): [reports, LETTERS]}
