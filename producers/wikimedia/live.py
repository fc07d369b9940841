"""The live stream: server-sent events over HTTP, without end.

When a connection ends, breaks or is silent, it is made again with the Last-Event-ID of the last complete event, so the server resumes after
it (an event that was cut off is sent again in full). After 408, 429 and 5xx, that happens with exponential backoff, not earlier than
Retry-After says. Any other HTTP error is raised for a person to fix.
"""

import queue
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from itertools import takewhile
from typing import NamedTuple, NoReturn

import httpx2

from infrastructure.errors import StreamgaugeError
from infrastructure.text import without_credentials
from infrastructure.web.client import client, reason
from producers.delivery.events import Idle
from producers.wikimedia.server_sent_events import ServerSentEvent, lines, messages

_MAX_RETRY_AFTER_SECONDS = 3600
_QUEUED_EVENTS = 10_000
_IDLE_SECONDS = 0.05
_CONTENT_TYPE = "text/event-stream"


@dataclass(frozen=True)
class Patience:
    """Timeouts in seconds.

    connect: for the server to answer. silence: for the next byte, before a reconnect. first_wait, longest_wait: between attempts; each wait
    is about twice the previous one.
    """

    connect: float = 10.0
    silence: float = 30.0
    first_wait: float = 1.0
    longest_wait: float = 60.0


class _Ended(NamedTuple):
    """Why a connection ended or failed, and how long the server asks to wait."""

    reason: str
    retry_after_seconds: float = 0


class LiveStream:
    """The events of the stream at `url` after `last_event_id` ("": from now on). Reports connection loss and recovery to `notice`."""

    def __init__(self, url: str, user_agent: str, last_event_id: str, notice: Callable[[str], None], patience: Patience) -> None:
        self._url, self._user_agent, self._notice = url, user_agent, notice
        self._shown_url = without_credentials(url)
        self._patience, self._last_event_id = patience, last_event_id
        self._events: queue.Queue[ServerSentEvent | Exception] = queue.Queue(_QUEUED_EVENTS)
        self._stopped = threading.Event()
        self._away_since: float | None = None
        self._has_moved = False

    def messages(self, idle: Idle) -> Iterator[ServerSentEvent]:
        """Yields events as they arrive, until a stop. Raises any error of the reading, StreamgaugeError when the server rejects the request permanently."""
        # Reading blocks, and Kafka's responses must be processed meanwhile.
        web = _web(self._user_agent, self._patience)
        threading.Thread(target=self._read_on, args=[web], name="live stream", daemon=True).start()
        try:
            while not idle.is_stopped():
                try:
                    event = self._events.get_nowait()
                except queue.Empty:
                    idle.wait(_IDLE_SECONDS)
                    continue
                if isinstance(event, Exception):
                    raise event
                yield event
        finally:
            self._stopped.set()

    def _read_on(self, web: httpx2.Client) -> None:
        failures = 0
        with web:
            while not self._stopped.is_set():
                self._has_moved = False
                try:
                    ended = self._read_connection(web)
                except Exception as error:  # if it stayed in this thread, the producer would wait for events that never come
                    self._events.put(error)
                    return
                failures = 1 if self._has_moved else failures + 1
                if not self._has_moved and self._away_since is None and not self._stopped.is_set():
                    self._away_since = time.monotonic()
                    self._notice(f"cannot reach the stream at {self._shown_url} ({ended.reason}); trying again until it answers")
                self._stopped.wait(max(ended.retry_after_seconds, self._wait_seconds(failures)))

    def _read_connection(self, web: httpx2.Client) -> _Ended:
        """Reads one connection until it ends. Raises StreamgaugeError for errors that a reconnect does not fix."""
        try:
            with connected(web, self._url, self._last_event_id) as response:
                kind = response.headers.get("Content-Type", "unknown")
                if not kind.startswith(_CONTENT_TYPE):
                    self._give_up(f"is not a stream of server-sent events (content type {kind})")
                self._read_events(response)
        except httpx2.HTTPStatusError as error:
            status = error.response.status_code
            if not _may_pass(status):
                self._give_up(f"answers HTTP {status}")
            return _Ended(f"HTTP {status}", retry_after_seconds(error.response))
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol):
            self._give_up("is not a valid address")
        except httpx2.HTTPError as error:
            return _Ended(reason(error))
        return _Ended("the connection ended or was silent")

    def _read_events(self, response: httpx2.Response) -> None:
        for message in messages(lines(chunks_of(response))):
            if self._stopped.is_set():
                return
            if self._away_since is not None:
                self._notice(f"the stream at {self._shown_url} is back after {time.monotonic() - self._away_since:.0f} s")
                self._away_since = None
            self._put(message)
            self._has_moved |= not message.id or message.id != self._last_event_id
            self._last_event_id = message.id or self._last_event_id

    def _put(self, message: ServerSentEvent) -> None:
        while not self._stopped.is_set():
            with suppress(queue.Full):
                self._events.put(message, timeout=1)
                return

    def _give_up(self, problem: str) -> NoReturn:
        position = " and the stored position" if self._last_event_id else ""
        msg = f"{self._shown_url} {problem}; check the address{position}, or replay a recording with --file"
        raise StreamgaugeError(msg)

    def _wait_seconds(self, failures: int) -> float:
        doubled = self._patience.first_wait * 2.0 ** min(failures - 1, 20)
        # Jitter, so that clients do not all reconnect at the same moment.
        return min(doubled, self._patience.longest_wait) * random.uniform(0.75, 1.0)  # noqa: S311 - no secret


def _web(user_agent: str, patience: Patience) -> httpx2.Client:
    headers = {b"User-Agent": user_agent.encode("latin-1"), b"Accept": _CONTENT_TYPE.encode()}
    return client(connect=patience.connect, silence=patience.silence, headers=headers)


@contextmanager
def connected(web: httpx2.Client, url: str, last_event_id: str) -> Iterator[httpx2.Response]:
    """One connection to the stream, after `last_event_id`. Raises HTTPError when it cannot be made."""
    position = last_event_id.encode("latin-1").strip()  # blanks around a header do not count in HTTP, and h11 refuses them
    headers = {b"Last-Event-ID": position} if position else {}
    with web.stream("GET", url, headers=headers) as response:
        yield response.raise_for_status()


def chunks_of(response: httpx2.Response) -> Iterator[bytes]:
    """The bytes of the response as they arrive, until the connection ends, breaks or is silent."""
    with suppress(httpx2.HTTPError):
        yield from response.iter_bytes()


def unreachable(url: str, user_agent: str, seconds: float) -> str | None:
    """Why the stream at `url` cannot be reached within about `seconds`, or sends no event. None if it can."""
    deadline = time.monotonic() + seconds
    try:
        with _web(user_agent, Patience(connect=seconds, silence=seconds)) as web, connected(web, url, "") as response:
            in_time = takewhile(lambda _: time.monotonic() < deadline, chunks_of(response))  # it may send comments without end
            return None if next(messages(lines(in_time)), None) else "no event came"
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        return reason(error)


def retry_after_seconds(response: httpx2.Response) -> float:
    """The Retry-After header, seconds or a date, in seconds. 0 without one that can be read."""
    text = response.headers.get("Retry-After", "")
    try:
        seconds = float(text) if text.isdecimal() else (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return 0
    return min(max(seconds, 0), _MAX_RETRY_AFTER_SECONDS)


def _may_pass(status: int) -> bool:
    return status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT}
