"""Records for the audit's recount, and what it takes from them."""

from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa

from audit.catalog import audited
from audit.records import SCHEMA
from audit.recount import Recount
from contract.settings import Settings

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def result(query, topic=None, **settings):
    """What the audit says of that query; of one with two topics, of that topic or the first."""
    found = [one for one in audited(replace(Settings(), **settings)) if one.query == query]
    return next(one for one in found if topic is None or one.topic.name == topic)


def records(topic, *values, clock=NOON):
    """Records of partition 0, from offset 0 on."""
    number = len(values)
    columns = [[topic] * number, [0] * number, range(number), [clock] * number, [clock] * number, values, [None] * number, [None] * number]
    return pa.table([pa.array(column, kind) for column, kind in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA)


def loaded(facts, *values, clock=NOON):
    """A recount with the facts of these values."""
    recount = Recount()
    recount.load([facts], [records(facts.source.name, *values, clock=clock)])
    return recount


def facts_of(query):
    """The facts from which the results of that query are made."""
    return result(query).facts
