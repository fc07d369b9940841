"""The main loop of every producer: paces events, injects faults, sends and counts them. Shuts down cleanly on a signal."""

import contextlib
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from contract.errors import StreamgaugeError
from contract.kafka.cluster import KafkaCluster
from contract.kafka.record_clock import clock_header
from contract.process.waiting import AWAY_SECONDS, FINISH_SECONDS
from producers.delivery import options
from producers.delivery.events import Event, Idle
from producers.delivery.faults import TOO_LATE_WATERMARKS, Corrupt, Faults, with_faults
from producers.delivery.pacing import paced, paced_by_event_time
from producers.delivery.sending import Delivery
from producers.delivery.summary import Summary, Tally

_SECONDS_A_LOOK = 0.1


@dataclass
class Stop:
    """Whether a signal requested a stop."""

    is_set: bool = False

    def __call__(self) -> bool:
        """Whether to stop. Allows a Stop to serve as `is_stopped`."""
        return self.is_set


@contextlib.contextmanager
def stopped_by_signals() -> Iterator[Stop]:
    """The first SIGINT or SIGTERM sets the Stop. A second one has its original effect."""
    stop = Stop()
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in signals}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def on_signal(*_: object) -> None:
        stop.is_set = True
        restore()

    for number in signals:
        signal.signal(number, on_signal)
    try:
        yield stop
    finally:
        restore()


@dataclass(frozen=True)
class Run:
    """Parameters of a producer run.

    rate: events per second (None: as fast as possible). total: number of events, if known. is_finite: whether the stream ends by itself.
    speed_up: seconds of event time per second; replaces the rate. is_simulated: whether event time is the producer's clock; each record
    then states it in a header.
    acknowledged: called with the mark of each event that Kafka has acknowledged.
    """

    kafka: KafkaCluster
    topic: str
    faults: Faults
    corrupt: Corrupt
    rate: float | None
    total: int | None = None
    is_finite: bool = True
    speed_up: float | None = None
    acknowledged: Callable[[int], None] | None = None
    is_simulated: bool = False


def send_all(run: Run, events: Iterable[Event] | Callable[[Idle], Iterable[Event]], console: Console) -> Summary:
    """Sends `events` until they end or a signal arrives. Returns the counts; all records are acknowledged except `undelivered`.

    events: for a stream that has to wait, for example for a server, a function that creates the events from an Idle.
    Raises StreamgaugeError when Kafka does not answer, does not have the topic, or rejects a record.
    """
    delivery = Delivery(run.kafka, lambda line: console.print(line, markup=False))
    delivery.check(run.topic)
    tally = Tally(None if run.is_finite else (TOO_LATE_WATERMARKS + 1) * run.faults.watermark_ms)
    start = time.monotonic()
    with stopped_by_signals() as stop, _progress(console, run.total) as show:
        stream = events(Idle(delivery.wait, stop)) if callable(events) else events
        on_the_clock = _on_the_clock(run, stream, delivery, stop)
        next_look = start
        for record in with_faults(on_the_clock, run.faults, run.corrupt):
            if not _send(delivery, run, record.event, stop):
                break
            tally.count(record)
            if (now := time.monotonic()) >= next_look:
                show(tally.kinds.total())
                next_look = now + _SECONDS_A_LOOK
        show(tally.kinds.total())
        undelivered = _flush(delivery, stop)
    return tally.summary(time.monotonic() - start, undelivered)


def _on_the_clock(run: Run, events: Iterable[Event], delivery: Delivery, stop: Stop) -> Iterator[Event]:
    if run.speed_up is not None:
        return paced_by_event_time(events, run.speed_up, clock=time.monotonic, wait=delivery.wait, is_stopped=stop)
    return paced(events, run.rate, clock=time.monotonic, wait=delivery.wait, is_stopped=stop)


def _send(delivery: Delivery, run: Run, event: Event, stop: Stop) -> bool:
    told = run.acknowledged
    acknowledged = partial(told, event.mark) if told is not None and event.mark is not None else None
    topic = event.topic or run.topic
    headers = (*event.headers, clock_header(event.event_time_ms)) if run.is_simulated and event.topic is None else event.headers
    return delivery.send(topic, event.key, event.value, headers=headers, acknowledged=acknowledged, is_stopped=stop)


def deliver(
    run: Run,
    events: Iterable[Event],
    facts: str,
    meaning: str,
    *,
    as_json: bool,
    counted: Callable[[Summary], Summary] = lambda summary: summary,
) -> None:
    """Sends `events` and prints the summary: as JSON on standard output, or as a table on standard error.

    facts, meaning: name and description of the facts in the summary, such as people_seen. counted: adjusts the summary before it is
    printed.
    Raises StreamgaugeError as `send_all`, and when records remain unacknowledged.
    """
    summary = counted(send_all(run, events, options.err))
    if as_json:
        options.out.print(summary.as_json(facts), markup=False)
    else:
        summary.print_table(options.err, facts, meaning)
    raise_if_undelivered(summary, run.kafka)


def warn_of_short_stream(faults: Faults, event_time_seconds: float) -> None:
    """Warns if the stream is too short for the requested too-late records."""
    needed = TOO_LATE_WATERMARKS * faults.watermark_seconds
    if faults.too_late and event_time_seconds <= needed:
        options.notice(
            f"warning: the stream is {event_time_seconds:.0f} s long in event time, and a record is held back for {needed:.0f} s to be too late: some will only be late; raise --limit or --speed-up"
        )


def _flush(delivery: Delivery, stop: Stop) -> int:
    """Waits for acknowledgements for up to AWAY_SECONDS. After a stop, for up to FINISH_SECONDS."""
    deadline = time.monotonic() + AWAY_SECONDS
    while delivery.undelivered and time.monotonic() < deadline and not stop():
        delivery.flush(_SECONDS_A_LOOK)
    return delivery.flush(FINISH_SECONDS)


@contextlib.contextmanager
def _progress(console: Console, total: int | None) -> Iterator[Callable[[int], None]]:
    """A progress bar, only on a terminal. Yields a function that takes the number of records sent."""
    if not console.is_terminal:
        yield lambda _: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("sent", total=total)
        yield lambda completed: progress.update(task, completed=completed)


def raise_if_undelivered(summary: Summary, kafka: KafkaCluster) -> None:
    """Raises StreamgaugeError when records remain unacknowledged."""
    if summary.undelivered:
        msg = f"{summary.undelivered} of {summary.events} records were not acknowledged by the Kafka at {kafka} before the end; see that it runs (`streamgauge up`), and start the producer again"
        raise StreamgaugeError(msg)
