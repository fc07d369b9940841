"""The answers on the pages of the domains, computed from the simulations without Spark and Kafka."""

import re
from collections import Counter
from datetime import UTC, datetime, timedelta

import duckdb
import pyarrow as pa
from documents import ROOT

from infrastructure.storage.data_files import data_file
from producers.nest import simulation as nest
from producers.nest.homes import device_locations
from producers.taxi import simulation as taxi
from producers.taxi.trips import TRIP


def answers(page):
    """Each table that a page shows as a command prints it, a tuple of cells for each row."""
    blocks = re.findall(r"^```\n(┏.*?)^```", (ROOT / "docs" / page).read_text(), re.DOTALL | re.MULTILINE)
    return [
        [tuple(cell.strip() for cell in line.strip("│").split("│")) for line in block.splitlines() if line[0] == "│"] for block in blocks
    ]


def test_the_people_seen_on_the_page_of_nest():
    documents = nest.simulate(nest.Simulation(datetime(2026, 11, 1, tzinfo=UTC), seed=1, limit=20_000))
    sightings = {fact for document in documents for fact in document.facts}
    zip_codes = {device: zip_code for device, zip_code, _ in device_locations()}
    counts = Counter((start_ms // 3_600_000, zip_codes.get(device, "unknown")) for device, start_ms in sightings)
    hours = {number: datetime.fromtimestamp(3600 * number, UTC) for number, _ in counts}
    report = [
        (f"{hours[number]:%FT%TZ}", f"{hours[number] + timedelta(hours=1):%FT%TZ}", zip_code, str(count))
        for (number, zip_code), count in sorted(counts.items())
        if count >= 15
    ]
    assert answers("nest.md")[0] == report
    assert f"20,000 documents contain {len(sightings)} sightings" in (ROOT / "docs" / "nest.md").read_text()


def test_the_trips_on_the_page_of_taxis():
    simulation = taxi.Simulation(datetime(2024, 3, 1, tzinfo=UTC), seed=1, limit=20_000, odd_fraction=0.005)
    with duckdb.connect() as database:
        database.register("trips", pa.Table.from_batches(taxi.simulated_trips(simulation), TRIP))
        database.read_csv(str(data_file("taxi_zone_lookup.csv"))).create_view("zones")
        dropoff = "epoch_ms(lpep_dropoff_datetime)"
        questions = (
            f"select hour({dropoff}), count(*), round(avg(tip_amount), 2) from trips group by all order by 2 desc limit 3",
            "select Zone, count(*), sum(total_amount::decimal(12, 2)) from trips join zones on PULocationID = LocationID group by all order by 2 desc limit 3",
            f"select year({dropoff}), count(*), count_if(total_amount < 0) from trips group by all order by 1",
        )
        found = [[tuple(map(str, row)) for row in database.sql(question).fetchall()] for question in questions]
    assert found == answers("taxi.md")
