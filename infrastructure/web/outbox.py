"""Sends alerts from a thread of its own, and tries each again."""

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

PAUSES_SECONDS = (0, 1, 2)
"""The pause before each new attempt."""
LAST_ALERTS_SECONDS = 5
MAX_WAITING = 1000

Finished = Callable[[bool], None]
"""Called once for each alert, with whether it was taken. It must neither wait nor raise an error."""


class NotTaken(Exception):  # noqa: N818 - it names what happened
    """An attempt has failed, and why. may_pass: whether a later one may succeed."""

    def __init__(self, why: str, *, may_pass: bool) -> None:
        super().__init__(why)
        self.may_pass = may_pass


class Outbox:
    """Sends alerts in order. Callers never wait, and errors never reach them; `say` gets a line for each alert that is lost.

    to: names where they go. connection: is entered before the first attempt and left after the last.
    """

    def __init__(self, to: str, say: Callable[[str], None], connection: contextlib.AbstractContextManager[Any]) -> None:
        self._to, self._say, self._connection = to, say, connection
        self._waiting: queue.Queue[tuple[Callable[[], None], Finished] | None] = queue.Queue(MAX_WAITING)
        self._thread = threading.Thread(target=self._send_all, name="outbox", daemon=True)
        self._thread.start()

    def put(self, text: str, attempt: Callable[[], None], finished: Finished) -> None:
        """Sends one alert. text: names it. attempt: sends it once, or raises NotTaken."""
        try:
            self._waiting.put_nowait((attempt, finished))
        except queue.Full:
            self._say(f"an alert is not sent to {self._to}, because {MAX_WAITING:,} wait already: {text}")
            finished(False)  # noqa: FBT003 - its only argument

    def close(self) -> None:
        """Sends the pending alerts, for at most LAST_ALERTS_SECONDS."""
        with contextlib.suppress(queue.Full):
            self._waiting.put_nowait(None)
        self._thread.join(LAST_ALERTS_SECONDS)

    def _send_all(self) -> None:
        with self._connection:
            while (waiting := self._waiting.get()) is not None:
                attempt, finished = waiting
                finished(self._is_taken(attempt))

    def _is_taken(self, attempt: Callable[[], None]) -> bool:
        for pause_seconds in (*PAUSES_SECONDS, None):
            try:
                attempt()
            except NotTaken as error:
                if pause_seconds is None or not error.may_pass:
                    self._say(f"an alert did not reach {self._to}: {error}")
                    break
                time.sleep(pause_seconds)
            except Exception as error:  # the next alert may be another
                self._say(f"an alert did not reach {self._to}: {type(error).__name__}: {error}")
                break
            else:
                return True
        return False
