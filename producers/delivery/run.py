"""The main loop of every producer: paces events, injects faults, sends and counts them. Shuts down cleanly on a signal."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.cluster import KafkaCluster
from infrastructure.kafka.record_clock import clock_header
from infrastructure.output.terminal import err, out
from infrastructure.process.stop_signals import stop_requested
from infrastructure.process.waiting import AWAY_SECONDS, FINISH_SECONDS
from producers.delivery.events import Event, Idle, Source
from producers.delivery.faults import TOO_LATE_WATERMARKS, Corrupt, Faults, with_faults
from producers.delivery.pacing import at_rate, by_event_time, paced
from producers.delivery.sending import Delivery
from producers.delivery.summary import Summary, Tally, as_json, as_table

_SECONDS_PER_LOOK = 0.1


@dataclass(frozen=True)
class Run:
    """Parameters of a producer run.

    source: of the events. Event time is the clock of a simulation, so each of its records states it in a header.
    rate: events per second (None: as fast as possible). total: number of events, if known.
    speed_up: seconds of event time per second; replaces the rate. facts, meaning: see Tally.
    """

    kafka: KafkaCluster
    topic: str
    facts: str
    meaning: str
    source: Source
    faults: Faults
    corrupt: Corrupt
    rate: float | None
    total: int | None = None
    speed_up: float | None = None


def deliver(
    run: Run,
    events: Iterable[Event] | Callable[[Idle], Iterable[Event]],
    *,
    json: bool,
    more_counts: Callable[[Summary], Summary] = lambda _: {},
) -> None:
    """Sends `events` until they end or a signal arrives, and prints the summary: as JSON on standard output, or as a table on standard error.

    events: for a stream that has to wait, for example for a server, a function that creates the events from an Idle.
    more_counts: the domain's own counts, from the summary.
    Raises StreamgaugeError when Kafka does not answer, does not have the topic, or rejects a record, and when records remain unacknowledged.
    Raises the error of `events` after it has sent what came before.
    """
    failures: list[Exception] = []
    with closing(Delivery(run.kafka, err.print)) as delivery:
        delivery.check(run.topic)
        summary = _send_all(delivery, run, events, failures)
    summary |= more_counts(summary)
    if json:
        out.print(as_json(summary))
    else:
        err.print(as_table(summary))
    (undelivered, _), (total, _) = summary["undelivered"], summary["events"]
    if undelivered:
        msg = f"{undelivered} of {total} records were not acknowledged by the Kafka at {run.kafka} before the end; check that it is running (`streamgauge up`), and start the producer again"
        raise StreamgaugeError(msg)
    if failures:
        raise failures[0]


def _send_all(
    delivery: Delivery, run: Run, events: Iterable[Event] | Callable[[Idle], Iterable[Event]], failures: list[Exception]
) -> Summary:
    # A recording can report a fact again at any time.
    tally = Tally(run.facts, run.meaning, None if run.source is Source.RECORDED else (TOO_LATE_WATERMARKS + 1) * run.faults.watermark_ms)
    start = next_look = time.monotonic()
    is_stopped = stop_requested().is_set
    due_seconds = at_rate(run.rate) if run.speed_up is None else by_event_time(run.speed_up)
    columns = (TextColumn("sent"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        bar = progress.add_task("sent", total=run.total)
        stream = events(Idle(delivery.wait, is_stopped)) if callable(events) else events
        on_the_clock = paced(_until_failure(stream, failures), due_seconds, clock=time.monotonic, wait=delivery.wait, is_stopped=is_stopped)
        for record in with_faults(on_the_clock, run.faults, run.corrupt):
            if not _send(delivery, run, record.event, is_stopped):
                break
            tally.count(record)
            if (now := time.monotonic()) >= next_look:
                progress.update(bar, completed=tally.kinds.total())
                next_look = now + _SECONDS_PER_LOOK
        progress.update(bar, completed=tally.kinds.total())
        undelivered = _flush(delivery, is_stopped)
    return tally.summary(time.monotonic() - start, undelivered)


def _until_failure(events: Iterable[Event], failures: list[Exception]) -> Iterator[Event]:
    """The events before an error, which is added to `failures`."""
    try:
        yield from events
    except (StreamgaugeError, OSError) as error:
        failures.append(error)


def _send(delivery: Delivery, run: Run, event: Event, is_stopped: Callable[[], bool]) -> bool:
    states_clock = run.source is Source.SIMULATED and event.topic is None
    headers = (*event.headers, clock_header(event.event_time_ms)) if states_clock else event.headers
    return delivery.send(
        event.topic or run.topic, event.key, event.value, headers=headers, acknowledged=event.acknowledged, is_stopped=is_stopped
    )


def _flush(delivery: Delivery, is_stopped: Callable[[], bool]) -> int:
    """Waits for acknowledgements for up to AWAY_SECONDS. After a stop, for up to FINISH_SECONDS."""
    deadline = time.monotonic() + AWAY_SECONDS
    while delivery.undelivered and time.monotonic() < deadline and not is_stopped():
        delivery.flush(_SECONDS_PER_LOOK)
    return delivery.flush(FINISH_SECONDS)
