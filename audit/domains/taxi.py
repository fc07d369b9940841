"""What the results of the taxi domain must be."""

from functools import partial

from audit.audited import Facts, Table
from audit.checks.archive import Archive
from audit.checks.dead_letters import DeadLetters
from audit.values.fields import flaws, read, values, when
from contract.domains.taxi import NYC_TAXI, TAXI_BOROUGH_STATS, TAXI_FLOWS, TAXI_ZONE_SESSIONS, TAXI_ZONE_SESSIONS_EARLY
from infrastructure import durations
from infrastructure.settings import Settings

MEASURES = ("trip_distance", "fare_amount", "tip_amount", "total_amount")
TRIP = {
    **dict.fromkeys(("VendorID", "lpep_pickup_datetime", "lpep_dropoff_datetime"), "bigint"),
    "store_and_fwd_flag": "text",
    **dict.fromkeys(("RatecodeID", "PULocationID", "DOLocationID", "passenger_count", "payment_type", "trip_type"), "bigint"),
    **dict.fromkeys(
        (*MEASURES, "extra", "mta_tax", "tolls_amount", "ehail_fee", "improvement_surcharge", "congestion_surcharge"), "decimal(12,2)"
    ),
}

READ_TRIPS = f"""
    SELECT *, moment_of_ms(dropoff_ms) AS dropoff
    FROM (
        SELECT *, as_bigint(trip.lpep_dropoff_datetime) AS dropoff_ms, as_bigint(trip.lpep_pickup_datetime) AS pickup_ms
        FROM (
            SELECT topic, partition, "offset", clock, md5_number(value) AS fingerprint, {read("document", TRIP)} AS trip
            FROM documents WHERE document IS NOT NULL))
"""

TRIPS = f"""
    SELECT
        topic, partition, "offset", fingerprint, dropoff, as_bigint(trip.PULocationID) AS pickup_id,
        as_bigint(trip.DOLocationID) AS dropoff_id, as_bigint(trip.passenger_count) AS passengers,
        {values("trip", dict.fromkeys(MEASURES, "decimal(12,2)").items())}
    FROM read_trips
    WHERE dropoff <= clock + INTERVAL '{{future}}'
"""

BOROUGH_STATS = f"""
    SELECT
        coalesce(Borough, 'Unknown') AS borough, window_from(start, {{window_us}}) AS "window", count(*) AS trips,
        CAST(sum(passengers) AS DOUBLE) / count(passengers) AS passenger_count_avg,
        {", ".join(f"sum({name}) AS {name}_sum, mean(sum({name}), count({name}), 6) AS {name}_avg" for name in MEASURES)}{{facts}}
    FROM (SELECT *, unnest(windows(dropoff, {{window_us}}, {{slide_us}})) AS start FROM counted)
    LEFT JOIN taxi_zone_lookup ON LocationID = pickup_id
    GROUP BY ALL
"""

FLOWS = """
    SELECT
        coalesce(pickup.Borough, 'Unknown') AS pickup_borough, coalesce(dropoff.Borough, 'Unknown') AS dropoff_borough,
        window_of(counted.dropoff, {window_us}) AS "window", count(*) AS trips{facts}
    FROM counted
    LEFT JOIN taxi_zone_lookup AS pickup ON pickup.LocationID = pickup_id
    LEFT JOIN taxi_zone_lookup AS dropoff ON dropoff.LocationID = dropoff_id
    GROUP BY ALL
"""

SESSION_GAP_US = 5 * 60 * 1_000_000
"""A longer pause between drop-offs ends a session of a zone; one of exactly this length does not."""

SESSIONS = f"""
    SELECT
        zone_id, coalesce(Borough, 'Unknown') AS borough, coalesce("Zone", 'Unknown') AS zone,
        window_from(min(dropoff), epoch_us(max(dropoff)) - epoch_us(min(dropoff)) + {SESSION_GAP_US}) AS "window", count(*) AS trips,
        sum(fare_amount) AS fare_amount_sum, sum(total_amount) AS total_amount_sum,
        max(dropoff) + to_microseconds({SESSION_GAP_US}) AS ends{{facts}}
    FROM (
        SELECT *, count_if(is_first) OVER (PARTITION BY zone_id ORDER BY dropoff) AS session
        FROM (
            SELECT *, coalesce(pickup_id, 264) AS zone_id, ends_session(dropoff, lag(dropoff) OVER of_zone, {SESSION_GAP_US}) AS is_first
            FROM counted
            WINDOW of_zone AS (PARTITION BY coalesce(pickup_id, 264) ORDER BY dropoff)))
    LEFT JOIN taxi_zone_lookup ON LocationID = zone_id
    GROUP BY zone_id, session, Borough, "Zone"
"""

EARLY_SESSIONS = f"""SELECT "window".start AS started, * EXCLUDE (ends) FROM ({SESSIONS})"""

ARCHIVE = f"""
    SELECT
        topic, partition, "offset", moment_of_ms(pickup_ms) AS pickup, read_trips.dropoff, CAST(read_trips.dropoff AS DATE) AS date,
        {values("trip", [(name, kind) for name, kind in TRIP.items() if "datetime" not in name])},
        pickup.Borough AS PUBorough, pickup."Zone" AS PUZone, dropoff.Borough AS DOBorough, dropoff."Zone" AS DOZone
    FROM read_trips
    LEFT JOIN taxi_zone_lookup AS pickup ON pickup.LocationID = as_bigint(trip.PULocationID)
    LEFT JOIN taxi_zone_lookup AS dropoff ON dropoff.LocationID = as_bigint(trip.DOLocationID)
    WHERE read_trips.dropoff <= clock + INTERVAL '{{future}}'
"""

REASONS = f"""
    SELECT topic, partition, "offset", unnest(CASE WHEN len(no_trip) > 0 THEN no_trip ELSE list_transform(
        [{", ".join(flaws("trip", TRIP))}, {when("moment_of_ms(pickup_ms) IS NULL AND pickup_ms IS NOT NULL", "lpep_pickup_datetime is not of the years 1970 to 9999")}],
        lambda reason: reason || '; the rest was used') END) AS reason
    FROM (
        SELECT *, list_filter([
            {", ".join(flaws("trip", {"lpep_dropoff_datetime": "bigint"}))},
            {when("trip.lpep_dropoff_datetime IS NULL", "no lpep_dropoff_datetime")},
            {when("dropoff_ms < 0", "lpep_dropoff_datetime is before 1970")},
            {when("dropoff_ms > epoch_ms(clock + INTERVAL '{future}')", "lpep_dropoff_datetime is in the future")}
        ], lambda reason: reason IS NOT NULL) AS no_trip
        FROM read_trips)
"""


def audited(settings: Settings) -> tuple[Table | Archive | DeadLetters, ...]:
    facts = partial(Facts, source=NYC_TAXI.name, parameters={"future": settings.future}, steps={"read_trips": READ_TRIPS})
    window_us = durations.microseconds(settings.taxi_window, "STREAMGAUGE_TAXI_WINDOW")
    slide_us = durations.microseconds(settings.taxi_slide or settings.taxi_window, "STREAMGAUGE_TAXI_SLIDE")
    count = partial(
        Table, facts=facts("trips", sql=TRIPS), event_time="dropoff", event_key=("dropoff", "fingerprint"), watermark=settings.watermark
    )
    session = partial(count, growing=("trips",), session_gap_us=SESSION_GAP_US)
    stats, flow, zone, early = (
        ("borough", "window"),
        ("pickup_borough", "dropoff_borough", "window"),
        ("zone_id", "window"),
        ("started", "zone_id"),
    )
    return (
        count(
            "taxi-borough-stats",
            TAXI_BOROUGH_STATS,
            key=stats,
            sql=BOROUGH_STATS,
            parameters={"window_us": window_us, "slide_us": slide_us},
            growing=("trips",),
        ),
        count("taxi-flows", TAXI_FLOWS, key=flow, sql=FLOWS, parameters={"window_us": window_us}, growing=("trips",)),
        session("taxi-zone-sessions", TAXI_ZONE_SESSIONS, key=zone, sql=SESSIONS, mode="append"),
        session("taxi-zone-sessions-early", TAXI_ZONE_SESSIONS_EARLY, key=early, sql=EARLY_SESSIONS),
        Archive("taxi-archive", "taxi/trips", facts("rows_of_trips", sql=ARCHIVE)),
        DeadLetters("taxi-dead-letters", facts("taxi_letters", sql=REASONS)),
    )
