"""The rules for lateness and duplicates, for all domains.

A fact is too late if its event time is not after the watermark of the batch before its own. Such facts count nowhere. Of the others, each event
counts once. A watermark is always behind the newest event that counts: one that is not was moved by an event that should not have counted, and
what it dropped should have counted, unless it was too late on its own partition as well.
"""

import pyarrow as pa

IN_TIME, UNKNOWN, LATE, WRONGLY_LATE = range(4)
"""The lateness of a fact: counted, perhaps too late, too late, and too late by a watermark that was ahead of every event that counts."""

STRETCHES = pa.schema(
    {
        "topic": pa.string(),
        "partition": pa.int32(),
        "start": pa.int64(),
        "end": pa.int64(),
        "late_until": pa.timestamp("us"),
        "in_time_after": pa.timestamp("us"),
        "is_ahead": pa.bool_(),
    }
)
"""Which facts are too late, by their offsets: see checkpoints.Stretch."""

JUDGED = f"""
    CREATE OR REPLACE TEMP TABLE judged AS
    SELECT
        facts.*, facts.rowid AS fact, is_ahead, late_until,
        CASE WHEN {{time}} <= late_until THEN {LATE} WHEN {{time}} > in_time_after THEN {IN_TIME} ELSE {UNKNOWN} END AS lateness
    FROM {{facts}} AS facts
    ASOF JOIN stretches ON
        facts.topic = stretches.topic AND facts.partition = stretches.partition AND facts."offset" >= stretches.start
    WHERE facts."offset" < stretches."end" AND {{time}} IS NOT NULL
"""

# The facts before a watermark are those that an earlier one judged: it never moves back.
WATERMARKS_AHEAD = """
    SELECT late_until, late_until > max(newest) OVER () AS is_beyond_all
    FROM (SELECT late_until, max({time}) AS newest FROM judged GROUP BY late_until)
    QUALIFY late_until >= {since} AND late_until > coalesce(
        max(newest) OVER (ORDER BY late_until ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), TIMESTAMP '1970-01-01')
"""

WRONGLY_JUDGED = f"""
    CREATE OR REPLACE TEMP TABLE judged AS
    SELECT * EXCLUDE (newest_before) REPLACE (
        CASE WHEN lateness = {LATE} AND late_until IN ({{ahead}}) AND NOT coalesce({{time}} <= newest_before - INTERVAL '{{delay}}', false)
        THEN {WRONGLY_LATE} ELSE lateness END AS lateness)
    FROM (
        SELECT
            *, max({{time}}) OVER (
                PARTITION BY topic, partition ORDER BY "offset" RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS newest_before
        FROM judged)
"""

COUNTED = f"""
    CREATE OR REPLACE TEMP VIEW counted AS
    SELECT DISTINCT ON ({{key}}) * FROM judged WHERE lateness <> {LATE} AND {{condition}}
"""

CONTESTED = f"""
    CREATE OR REPLACE TEMP VIEW counted AS
    SELECT judged.* FROM judged SEMI JOIN (
        SELECT {{key}} FROM judged WHERE lateness <> {LATE} GROUP BY ALL HAVING min(hash({{content}})) <> max(hash({{content}}))
    ) USING ({{key}})
    WHERE lateness <> {LATE} AND {{condition}}
"""
"""As COUNTED, but all reports of those events alone of which not all reports say the same: Spark counts the one that it happens to read first."""

ALL = """
    CREATE OR REPLACE TEMP VIEW counted AS
    SELECT * FROM judged WHERE {condition}
"""
"""As COUNTED, with late facts and repeated ones."""

TOTALS = f"""
    SELECT
        CAST(coalesce(sum(found), 0) AS BIGINT) AS rows, count(*) AS events, CAST(coalesce(sum(late), 0) AS BIGINT) AS late_rows,
        count(*) FILTER (late = found) AS late_events, CAST(coalesce(sum(unknown), 0) AS BIGINT) AS unknown_rows,
        count(*) FILTER (wrongly > 0 AND late + wrongly = found) AS wrongly_late_events
    FROM (
        SELECT
            count(*) AS found, count(*) FILTER (lateness = {LATE}) AS late, count(*) FILTER (lateness = {UNKNOWN}) AS unknown,
            count(*) FILTER (lateness = {WRONGLY_LATE}) AS wrongly
        FROM judged WHERE NOT is_ahead AND {{condition}} GROUP BY {{key}})
"""
