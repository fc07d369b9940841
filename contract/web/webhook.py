"""Sends alerts by POST, as JSON that chat programs accept."""

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

import httpx2
import orjson

from contract.web.client import client, reason

ANSWER_SECONDS = 5
PAUSES_SECONDS = (0, 1, 2)
"""Before each new attempt to reach the webhook."""
MAY_PASS = {429, 500, 502, 503, 504}
"""The statuses of a server that may answer later."""
LAST_ALERTS_SECONDS = 5
MAX_WAITING = 1000


class Form(NamedTuple):
    """The form in which a webhook takes alerts. body: of an alert, a contract.topics.Alert with its field `text`."""

    content_type: str
    body: Callable[[Mapping[str, str]], bytes]


JSON = Form("application/json", orjson.dumps)


class Webhook:
    """Sends alerts to `url` from a thread of its own. Callers never wait, and errors never reach them; `say` gets a line for each alert that is lost.

    Without an address, it does nothing. form: of its requests.
    """

    def __init__(self, url: str, say: Callable[[str], None], form: Form = JSON) -> None:
        self._url, self._say, self._form = url, say, form
        self._waiting: queue.Queue[bytes | None] = queue.Queue(MAX_WAITING)
        self._thread = threading.Thread(target=self._post_all, name="webhook", daemon=True)
        if self._url:
            self._thread.start()

    def send(self, alert: Mapping[str, str]) -> None:
        """Sends one alert, a contract.topics.Alert."""
        if self._url:
            # Chat programs' webhooks show the field `text`.
            text = f"{alert['level']}: {alert['query']}: {alert['what']}"
            try:
                self._waiting.put_nowait(self._form.body({**alert, "text": text}))
            except queue.Full:
                self._say(f"an alert is not sent to ALERT_WEBHOOK_URL, because {MAX_WAITING:,} wait already: {text}")

    def close(self) -> None:
        """Sends the pending alerts, for at most LAST_ALERTS_SECONDS."""
        if self._url:
            with contextlib.suppress(queue.Full):
                self._waiting.put_nowait(None)
            self._thread.join(LAST_ALERTS_SECONDS)

    def _post_all(self) -> None:
        with client(connect=ANSWER_SECONDS, silence=ANSWER_SECONDS, headers={"Content-Type": self._form.content_type}) as web:
            while (alert := self._waiting.get()) is not None:
                self._post(web, alert)

    def _post(self, web: httpx2.Client, alert: bytes) -> None:
        for pause_seconds in (*PAUSES_SECONDS, None):
            try:
                web.post(self._url, content=alert).raise_for_status()
            except httpx2.HTTPError as error:
                if pause_seconds is None or not _may_pass(error):
                    # Only the host is named, because the path of a webhook is often its secret.
                    self._say(f"an alert did not reach ALERT_WEBHOOK_URL at {urlsplit(self._url).hostname}: {reason(error)}")
                    return
                time.sleep(pause_seconds)
            else:
                return


def _may_pass(error: httpx2.HTTPError) -> bool:
    return not isinstance(error, httpx2.HTTPStatusError) or error.response.status_code in MAY_PASS
