"""Which facts each table says that a row is made of: those that give it alone, each in its rows."""

import random
from dataclasses import replace
from datetime import timedelta

import orjson
import pyarrow as pa
import pytest
from auditing import NOON, loaded

from audit.audited import Table
from audit.catalog import audited
from audit.reading.checkpoints import Stretch
from audit.recount.recount import Recount, canonical_key
from audit.time_range import ms_of
from infrastructure.settings import Settings

TABLES = [one for one in audited(replace(Settings(), crowd=2, inactive_after="60 days")) if isinstance(one, Table) and one.fold is None]
AFTER_ALL_MS = ms_of(NOON + timedelta(days=30))


def seconds(rng):
    return rng.randrange(4 * 3600)


def moment(rng):
    return f"{NOON + timedelta(seconds=seconds(rng)):%Y-%m-%dT%H:%M:%SZ}"


def nest(rng):
    states = {name: rng.choice(["ok", "warning", "emergency"]) for name in ("smoke_alarm_state", "co_alarm_state")}
    of_home = {"structure_id": rng.choice("AB"), "last_connection": moment(rng)}
    return {
        "devices": {
            "cameras": {rng.choice("abc"): {"last_event": {"has_person": True, "start_time": moment(rng)}}},
            "thermostats": {rng.choice("de"): {**of_home, "ambient_temperature_c": rng.randrange(20)}},
            "smoke_co_alarms": {rng.choice("fg"): {**of_home, **states}},
        }
    }


def taxi(rng):
    dropoff_ms = ms_of(NOON + timedelta(seconds=seconds(rng)))
    return {"lpep_dropoff_datetime": dropoff_ms, "PULocationID": rng.choice([74, 75]), "DOLocationID": 1, "fare_amount": rng.randrange(99)}


def edits(table, rng):
    """A recount of changes of wikis, without their Avro."""
    rows = [
        {
            **dict(zip(("topic", "partition", "offset"), ("wikimedia", 0, offset), strict=True)),
            "event_id": f"{offset}",
            "edited_at": (NOON + timedelta(seconds=seconds(rng))).replace(tzinfo=None),
            "requested_by": rng.choice(["Bot", "Human"]),
            "wiki": rng.choice("xy"),
            "namespace": 0,
            "bytes": rng.randrange(-9, 9),
            "user": rng.choice("uvw"),
        }
        for offset in range(60)
    ]
    recount = Recount()
    recount.database.register("rows", pa.Table.from_pylist(rows))
    recount.database.execute(f"CREATE TABLE {table.facts.name} AS FROM rows")
    return recount


def recount_of(table, rng):
    source = table.facts.source
    if source == "wikimedia":
        return edits(table, rng)
    make = {"nest-logs": nest, "nyc-taxi": taxi}[source]
    return loaded(table.facts, *(orjson.dumps(make(rng)) for _ in range(60)), clock=NOON + timedelta(hours=5))


@pytest.mark.parametrize("table", TABLES, ids=[one.query for one in TABLES])
def test_each_row_is_made_of_the_facts_that_give_it_alone(table):
    recount = recount_of(table, random.Random(table.query))
    recount.judge(table, [Stretch(table.facts.source, 0, 0, 60, 0, 0)], 0)
    expected = recount.written(table, AFTER_ALL_MS)
    behind = {canonical_key(row, table.key): row["facts"] for row in recount.with_facts(table, AFTER_ALL_MS, "true")}
    assert behind.keys() == expected.keys()
    assert len(expected) > 1
    for key, facts in behind.items():
        listed = ", ".join(map(str, facts))
        assert recount.written(table, AFTER_ALL_MS, f"fact IN ({listed})")[key] == expected[key], key
    assert max(map(len, behind.values())) > 1, "rows of several facts"
