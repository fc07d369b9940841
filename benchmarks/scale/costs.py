"""What a batch of a query costs: measured once, kept in costs.json."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from contract.domains.nest import NEST_LOGS

KEPT = Path(__file__).with_name("costs.json")


@dataclass(frozen=True)
class Costs:
    """Costs of a query. Times are in units of the machine, so that they hold on another one.

    record: CPU of a record. batch: CPU of a batch, however small. batch_wall: how long such a batch takes on two cores, for a source with
    the partitions of nest-logs; partition_wall: how much longer, for each further partition. parallel: how much of its cores the part that grows
    with the records uses, 0 to 1. state_bytes: memory of a row of state.
    """

    record: float
    batch: float
    batch_wall: float
    partition_wall: float
    parallel: float
    state_bytes: float

    def batch_seconds(self, records: float, *, cores: int, partitions: int, unit: float) -> float:
        """Wall time of a batch of `records` on so many cores, on a machine whose unit is `unit` seconds."""
        fixed = max(self.batch_wall, self.batch / cores) + self.partition_wall * (partitions - NEST_LOGS.partitions)
        used = min(cores, partitions)
        return unit * (fixed + records * self.record / (used * self.parallel if used > 1 else 1))


def read() -> dict[str, Costs]:
    """Costs by query, from costs.json."""
    return {name: Costs(**costs) for name, costs in json.loads(KEPT.read_text()).items()}


def keep(costs: dict[str, Costs]) -> None:
    """Replaces costs.json."""
    rounded: dict[str, Any] = {query: {name: float(f"{value:.3g}") for name, value in asdict(one).items()} for query, one in costs.items()}
    KEPT.write_text(json.dumps(rounded, indent=2) + "\n")
