"""Simulated trips in a file as TLC publishes it."""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from producers.taxi.simulation import simulated_trips
from producers.taxi.trips import PICKUP, TIMES, TRIP


def write_parquet(path, simulation):
    """Writes the trips of `simulation`, which must have a limit, with the types and row order of TLC's files.

    The order is by pick-up. Rows without codes come last, again from the beginning of the month.
    """
    trips = pa.Table.from_batches(simulated_trips(simulation), TRIP)
    order = pc.sort_indices(
        pa.table({"lacks_codes": pc.is_null(trips["RatecodeID"]), PICKUP: trips[PICKUP]}),
        sort_keys=[("lacks_codes", "ascending"), (PICKUP, "ascending")],
    )
    pq.write_table(trips.cast(_as_tlc_writes(), safe=False).take(order), path)


def _as_tlc_writes():
    def written(field):
        if field.name in TIMES:
            return pa.timestamp("ms")
        if field.name in {"VendorID", "PULocationID", "DOLocationID"}:
            return pa.int32()
        return pa.float64() if pa.types.is_integer(field.type) else field.type

    return pa.schema([(field.name, written(field)) for field in TRIP])
