"""What topic `query-states` says of the runs before this one: whether their processes were killed, or still run the queries.

The lock of a checkpoint keeps a query from running twice in one STREAMGAUGE_HOME. With another home, its second run would begin at the start of
the topic, and write its own counts into the result topic of the first.
"""

import os
import socket
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import psutil

from contract.query_status import HEARTBEAT_SECONDS, SILENT, QueryStatus, read_statuses
from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.errors import KafkaRefuses
from infrastructure.process.locks import InUse
from infrastructure.process.stop_signals import StopRequest
from infrastructure.settings import Settings

SILENCE_SECONDS = 2 * HEARTBEAT_SECONDS
"""A process on another host is gone if it reports nothing for this time."""
_POLL_SECONDS = 0.5


class RunsElsewhere(InUse):
    """A process with another STREAMGAUGE_HOME runs the query on this Kafka."""

    def __init__(self, run: QueryStatus) -> None:
        super().__init__(
            f"query {run.query} runs in process {run.pid} on {run.host}, with another STREAMGAUGE_HOME: each would write its own counts into "
            f"the same result topic; stop that one first, or set STREAMGAUGE_TOPIC_PREFIX for one of them"
        )


@dataclass(frozen=True)
class EarlierRuns:
    """elsewhere: by query, the runs of other processes. killed_at: when the last of the killed ones reported last; None if none was killed."""

    elsewhere: Mapping[str, QueryStatus] = field(default_factory=dict)
    killed_at: datetime | None = None


def earlier_runs(queries: Collection[str], settings: Settings, say: Callable[[str], None], stop: StopRequest) -> EarlierRuns:
    """The runs of these queries that have not said that they stopped. This process has the locks of their checkpoints.

    Empty if Kafka cannot be reached: each query finds that out by itself. Empty with a warning, if it does not let this client read the topic.
    """

    def read() -> list[QueryStatus]:
        try:
            statuses = read_statuses(settings, say) if queries else []
        except KafkaRefuses as error:
            say(f"whether another process runs these queries is not known: {error}")
            return []
        except StreamgaugeError:
            return []
        return [status for status in statuses if status.query in queries and (status.has_process or status.state == SILENT)]

    runs = read()
    elsewhere = _alive(runs, read, say, stop)
    return EarlierRuns(elsewhere, max((run.heard_at for run in runs if run.query not in elsewhere), default=None))


def _alive(
    runs: Collection[QueryStatus], read: Callable[[], Collection[QueryStatus]], say: Callable[[str], None], stop: StopRequest
) -> dict[str, QueryStatus]:
    """The runs whose process is alive, by query. On this host, its id shows it; on another host, its next report."""
    here = socket.gethostname()
    alive = {run.query: run for run in runs if run.host == here and _is_alive(run)}
    others = {run.query: run for run in runs if run.host != here and run.state != SILENT}
    if others:
        hosts = ", ".join(sorted({run.host for run in others.values()}))
        say(f"waiting for up to {SILENCE_SECONDS} s: a process on {hosts} ran {', '.join(sorted(others))}, and may still do so")
    deadline = time.monotonic() + SILENCE_SECONDS
    while others and time.monotonic() < deadline and not stop.wait(_POLL_SECONDS):
        newer = [run for run in read() if run.query in others and run.heard_at > others[run.query].heard_at]
        # A process reports one query after the other, and runs all of them.
        reporting = {(run.host, run.pid) for run in newer}
        heard = {run.query: run for run in (*others.values(), *newer) if (run.host, run.pid) in reporting}
        alive |= heard
        others = {query: run for query, run in others.items() if query not in heard}
    return alive


def _is_alive(run: QueryStatus) -> bool:
    if run.pid == os.getpid():  # an earlier run of this process, or of one in a container with the same process ids
        return False
    try:
        process = psutil.Process(run.pid)
        is_reused = process.create_time() > run.heard_at.timestamp()
        return not is_reused and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
