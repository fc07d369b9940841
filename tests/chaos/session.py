"""Rounds of chaos on one system: faults while producers send, and then a proof that nothing is wrong.

A round is over when every query has committed every record of its topic. Then two things must agree exactly: what the sinks hold with the recount
of `streamgauge verify`, and what the producers say they have sent with what was counted (plan.disagreements).
"""

import json
import random
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from audit.commands import verdicts_of
from audit.verdicts.show import as_json
from chaos.faults import inflict
from chaos.plan import Fault, Kind, Total, disagreements, faults, not_right, totals
from chaos.system import System, ended
from contract.checkpoints.contents import Checkpoint
from contract.query_status import FAILED, read_statuses
from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.topic_ends import first_and_end_offsets, partitions_by_topic
from infrastructure.storage.data_files import data_file
from pipeline.catalog import queries
from pipeline.sources.kafka import KafkaTopic
from streamgauge.platform.log_file import log_tail

IMPERFECTIONS = ["--late", "0.05", "--too-late", "0.01", "--duplicates", "0.03", "--corrupt", "0.01", "--json"]
BEGIN = datetime(2024, 3, 1, tzinfo=UTC)
LOADS = {
    "nest": (100, ["--speed-up", "60"], timedelta(hours=1)),
    "taxi": (100, ["--odd", "0.005"], timedelta(days=4)),
    "wikimedia": (50, ["--speed-up", "20"], timedelta(hours=1)),
}
"""By domain, the events per second of its producer, its other options, and how much later in event time each round begins than the one before."""
NEWER_SCHEMA = ["--schema", str(data_file("schemas/wikimedia-value.v2.avsc"))]
DRAIN_SECONDS = 600
"""How long a producer may take to end, and a query to read what it has not read: far longer than it takes on a slow and busy machine."""
RETRY_SECONDS = 0.3
UNCOUNTED = {Kind.ODD_VALUES, Kind.AGAIN}
"""After these, the topics hold more than what the producers have sent."""


class Session:
    """Rounds on one system, one after the other."""

    def __init__(self, system: System, say: Callable[[str], None]) -> None:
        self._system, self._say = system, say
        self._rounds = 0
        self._totals = dict.fromkeys(LOADS, Total())
        self._began = time.monotonic()

    def round(self, rng: random.Random, kinds: Sequence[Kind], seconds: float) -> list[str]:
        """Runs a round in which producers send for `seconds`, not counting their pauses. Returns what is wrong in the end, a line each."""
        planned = faults(rng, kinds, seconds)
        self._start_producers(rng, seconds, has_newer_schema=Kind.NEW_SCHEMA in kinds)
        self._began = time.monotonic()
        for fault in planned:
            self._let_happen(fault, rng)
        sent = self._summaries()
        self._wait_until_all_is_read()
        return self._wrong({} if UNCOUNTED & set(kinds) else sent)

    def end(self) -> list[str]:
        """Stops the pipeline, and takes what is left; returns what is wrong then."""
        self._system.drain()
        return self._wrong({})

    def _start_producers(self, rng: random.Random, seconds: float, *, has_newer_schema: bool) -> None:
        for domain, (rate, options, step) in LOADS.items():
            more = NEWER_SCHEMA if has_newer_schema and domain == "wikimedia" else []
            start = f"{BEGIN + self._rounds * step:%Y-%m-%dT%H:%M:%SZ}"
            paced = ["--rate", str(rate), "--limit", str(round(rate * seconds)), "--start", start, "--seed", str(rng.randrange(1_000_000))]
            self._system.start_producer(domain, [*paced, *options, *IMPERFECTIONS, *more])
        self._rounds += 1

    def _let_happen(self, fault: Fault, rng: random.Random) -> None:
        time.sleep(max(0.0, self._began + fault.at_second - time.monotonic()))
        self._tell(fault.kind.value + (f" for {fault.seconds:.1f} s" if fault.seconds else ""))
        inflict(fault, self._system, rng)

    def _summaries(self) -> dict[str, Any]:
        """What the producers say that they have sent, except those that were killed."""
        sent = {}
        for domain, producer in self._system.producers.items():
            if (code := ended(producer, DRAIN_SECONDS)) != 0:
                msg = f"the producer of {domain} ended with {code}: {log_tail(producer.log)}"
                raise StreamgaugeError(msg)
            sent[domain] = json.loads(producer.log.read_text().splitlines()[-1])
        return sent

    def _wait_until_all_is_read(self) -> None:
        deadline = time.monotonic() + DRAIN_SECONDS
        while behind := self._behind():
            _ = self._system.pipeline  # raises when it has ended by itself
            if time.monotonic() > deadline:
                msg = f"after {DRAIN_SECONDS} s, there are records that no batch has committed: {'; '.join(behind)}"
                raise StreamgaugeError(msg)
            time.sleep(RETRY_SECONDS)
        self._tell("all is read")

    def _behind(self) -> list[str]:
        """What each query has not committed."""
        settings = self._system.settings
        if given_up := [status for status in read_statuses(settings, self._say) if status.state == FAILED]:
            msg = f"given up: {'; '.join(f'{status.query} ({status.error})' for status in given_up)}"
            raise StreamgaugeError(msg)
        numbers = partitions_by_topic(settings.kafka)
        found = []
        for query in queries(settings):
            assert isinstance(query.source, KafkaTopic)
            partitions = [(query.source.name, number) for number in numbers[query.source.name]]
            checkpoint = Checkpoint(query.checkpoint_name.folder(settings))
            batch = checkpoint.batch(checkpoint.last_committed)
            committed = {} if batch is None else batch.ends
            ends = first_and_end_offsets(settings.kafka, partitions)
            if count := sum(end - committed.get(partition, 0) for partition, (_, end) in ends.items()):
                found.append(f"{query.name}: {count} records")
        return found

    def _wrong(self, sent: dict[str, Any]) -> list[str]:
        """What is not as it must be; what was found is the base of the next round."""
        verdicts = verdicts_of([], self._system.settings)
        found = {one["query"]: one for one in json.loads(as_json(verdicts))}
        before, self._totals = self._totals, totals(found)
        return not_right(found) + disagreements(sent, before, self._totals)

    def _tell(self, what: str) -> None:
        self._say(f"  {time.monotonic() - self._began:6.1f} s  {what}")
