"""The live stream: server-sent events over HTTP, without end.

requests-sse reads one connection; this module reconnects. When a connection ends, breaks or is silent, it reconnects with the
Last-Event-ID of the last complete event, so the server resumes after it (an event that was cut off is sent again in full). After 408, 429
and 5xx it retries with exponential backoff, not earlier than Retry-After says. Any other HTTP error is raised for a person to fix.
"""

import queue
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import NamedTuple

import requests
import urllib3
from requests_sse import EventSource, InvalidContentTypeError, InvalidStatusCodeError, ReadyState

from contract.errors import StreamgaugeError
from contract.text import without_credentials
from producers.delivery.events import Idle

_MAX_RETRY_AFTER_SECONDS = 3600
_QUEUED_EVENTS = 10_000
_IDLE_SECONDS = 0.05
_READ_BYTES = 64 * 1024


class Message(NamedTuple):
    """A complete event of the stream: its id ("" if it has none) and its text."""

    id: str
    text: bytes


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


class _ConnectionEnded(Exception):  # noqa: N818 - that is no error
    """The server closed the connection, or was silent for too long."""


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
        self._events: queue.Queue[Message | StreamgaugeError] = queue.Queue(_QUEUED_EVENTS)
        self._stopped = threading.Event()
        self._away_since: float | None = None

    def messages(self, idle: Idle) -> Iterator[Message]:
        """Yields events as they arrive, until a stop. Raises StreamgaugeError when the server rejects the request permanently."""
        # Reading blocks, and Kafka's responses must be processed meanwhile.
        threading.Thread(target=self._read_on, name="live stream", daemon=True).start()
        try:
            while not idle.is_stopped():
                try:
                    event = self._events.get_nowait()
                except queue.Empty:
                    idle.wait(_IDLE_SECONDS)
                    continue
                if isinstance(event, StreamgaugeError):
                    raise event
                yield event
        finally:
            self._stopped.set()

    def _read_on(self) -> None:
        failures = 0
        with requests.Session() as session:
            session.headers["User-Agent"] = self._user_agent
            while not self._stopped.is_set():
                before = self._last_event_id
                try:
                    ended = self._read_connection(session)
                except StreamgaugeError as error:
                    self._events.put(error)
                    return
                has_moved = self._last_event_id != before
                failures = 1 if has_moved else failures + 1
                if not has_moved and self._away_since is None and not self._stopped.is_set():
                    self._away_since = time.monotonic()
                    self._notice(f"cannot reach the stream at {self._shown_url} ({ended.reason}); trying again until it answers")
                self._stopped.wait(max(ended.retry_after_seconds, self._wait_seconds(failures)))

    def _read_connection(self, session: requests.Session) -> _Ended:
        """Reads one connection until it ends. Raises StreamgaugeError for errors that a reconnect does not fix."""
        try:
            with connect(session, self._url, self._last_event_id, self._patience) as source:
                self._read_events(source)
        except InvalidStatusCodeError as error:
            if _may_pass(error.status_code):
                return _Ended(f"HTTP {error.status_code}", retry_after_seconds(error.response))
            problem = f"answers HTTP {error.status_code}"
            raise self._refused_for_good(problem) from error
        except InvalidContentTypeError as error:
            problem = f"is not a stream of server-sent events (content type {error.content_type})"
            raise self._refused_for_good(problem) from error
        except (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema, requests.exceptions.MissingSchema) as error:
            problem = "is not a valid address"
            raise self._refused_for_good(problem) from error
        except requests.RequestException as error:
            return _Ended(type(error).__name__)
        except _ConnectionEnded:
            pass
        return _Ended("the connection ended, or was silent")

    def _read_events(self, source: EventSource) -> None:
        while not self._stopped.is_set():
            try:
                event = next(source)
            except UnicodeDecodeError as error:
                # Emit the raw line; its event then has no data and is skipped.
                self._put(Message("", error.object.partition(b":")[2].strip()))
                continue
            if event.data is None:
                continue
            if self._away_since is not None:
                self._notice(f"the stream at {self._shown_url} is back after {time.monotonic() - self._away_since:.0f} s")
                self._away_since = None
            self._put(Message(event.last_event_id, event.data.encode()))
            self._last_event_id = event.last_event_id or self._last_event_id

    def _put(self, message: Message) -> None:
        while not self._stopped.is_set():
            with suppress(queue.Full):
                self._events.put(message, timeout=1)
                return

    def _refused_for_good(self, what: str) -> StreamgaugeError:
        position = " and the stored position" if self._last_event_id else ""
        return StreamgaugeError(f"{self._url} {what}; check the address{position}, or replay a recording with --file")

    def _wait_seconds(self, failures: int) -> float:
        doubled = self._patience.first_wait * 2.0 ** min(failures - 1, 20)
        # Jitter, so that clients do not all reconnect at the same moment.
        return min(doubled, self._patience.longest_wait) * random.uniform(0.75, 1.0)  # noqa: S311 - no secret


def connect(session: requests.Session, url: str, last_event_id: str, patience: Patience) -> EventSource:
    """One connection, opened by `with`. Raises what requests-sse raises. Raises _ConnectionEnded at its end, and never reconnects."""

    def on_error() -> None:
        # requests-sse calls this before it would wait and reconnect itself.
        if source.ready_state is ReadyState.CONNECTING:
            raise _ConnectionEnded

    source = EventSource(
        url,
        session=session,
        hooks={"response": _read_as_it_comes},
        timeout=(patience.connect, patience.silence),  # type: ignore[arg-type]  # it is handed to requests, which takes two
        max_connect_retry=0,
        latest_event_id=last_event_id or None,
        on_error=on_error,
    )
    return source


def _read_as_it_comes(response: requests.Response, *_: object, **__: object) -> None:
    """Makes the response yield lines as they arrive. By default it waits for 512 bytes (an event or two) if a server sends no chunks."""
    response.iter_lines = partial(_lines, response.raw)  # type: ignore[method-assign]


def _lines(raw: urllib3.HTTPResponse) -> Iterator[bytes]:
    rest = b""
    try:
        while data := raw.read1(_READ_BYTES, decode_content=True):
            *lines, rest = (rest + data).split(b"\n")
            yield from lines
    except urllib3.exceptions.HTTPError as error:
        raise requests.ConnectionError(error) from error


def unreachable(url: str, user_agent: str, seconds: float) -> str | None:
    """Why the stream at `url` cannot be reached within about `seconds`. None if it can."""
    try:
        with requests.Session() as session:
            session.headers["User-Agent"] = user_agent
            with connect(session, url, "", Patience(connect=seconds, silence=seconds)) as source:
                next(source)
    except UnicodeDecodeError:
        return None
    except _ConnectionEnded:
        return "no event came"
    except requests.RequestException as error:
        return f"HTTP {error.response.status_code}" if error.response is not None else type(error).__name__
    return None


def retry_after_seconds(response: requests.Response | None) -> float:
    """The Retry-After header, seconds or a date, in seconds. 0 without one that can be read."""
    text = response.headers.get("Retry-After", "") if response is not None else ""
    try:
        return urllib3.Retry(retry_after_max=_MAX_RETRY_AFTER_SECONDS).parse_retry_after(text)
    except (urllib3.exceptions.InvalidHeader, ValueError, OverflowError):
        return 0


def _may_pass(status: int) -> bool:
    return status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT}
