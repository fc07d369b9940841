"""Reports what the pipeline cannot fix by itself: to topic `alerts` and, if configured, to a webhook."""

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal
from urllib.parse import urlsplit

import httpx2
import orjson
from confluent_kafka import KafkaException

from contract.kafka.cluster import close_producer
from contract.settings import Settings
from contract.text import utc_text
from contract.topics import ALERTS
from contract.web.client import client, reason

ANSWER_SECONDS = 5
PAUSES_SECONDS = (0, 1, 2)
"""Before each new attempt to reach the webhook."""
MAY_PASS = {429, 500, 502, 503, 504}
"""The statuses of a server that may answer later."""
LAST_ALERTS_SECONDS = 5
MAX_WAITING = 1000


class Alerts:
    """Sends alerts from its own thread. Callers never wait, and sending errors never reach them."""

    def __init__(self, settings: Settings, say: Callable[[str], None]) -> None:
        self._producer = settings.kafka.producer({"queue.buffering.max.messages": MAX_WAITING})
        self._webhook = settings.alert_webhook_url
        self._say = say
        self._waiting: queue.Queue[bytes | None] = queue.Queue(MAX_WAITING)
        self._thread = threading.Thread(target=self._post_all, name="alerts", daemon=True)
        if self._webhook:
            self._thread.start()

    def send(self, level: Literal["warning", "error", "resolved"], query: str, what: str, detail: str = "") -> None:
        """Sends one alert. level: `resolved` ends an earlier warning. what: one line on what happened to `query`. detail: text of any length."""
        alert = {"time": utc_text(datetime.now(UTC)), "level": level, "query": query, "what": what, "detail": detail}
        with contextlib.suppress(BufferError, KafkaException):
            self._producer.produce(ALERTS.name, key=query, value=orjson.dumps(alert))
            self._producer.poll(0)
        if self._webhook:
            with contextlib.suppress(queue.Full):
                # Chat programs' webhooks show the field `text`.
                self._waiting.put_nowait(orjson.dumps({**alert, "text": f"{level}: {query}: {what}"}))

    def close(self) -> None:
        """Sends the pending alerts, for at most LAST_ALERTS_SECONDS."""
        if self._webhook:
            with contextlib.suppress(queue.Full):
                self._waiting.put_nowait(None)
            self._thread.join(LAST_ALERTS_SECONDS)
        close_producer(self._producer, LAST_ALERTS_SECONDS)

    def _post_all(self) -> None:
        with client(connect=ANSWER_SECONDS, silence=ANSWER_SECONDS, headers={"Content-Type": "application/json"}) as web:
            while (alert := self._waiting.get()) is not None:
                self._post(web, alert)

    def _post(self, web: httpx2.Client, alert: bytes) -> None:
        for pause_seconds in (*PAUSES_SECONDS, None):
            try:
                web.post(self._webhook, content=alert).raise_for_status()
            except httpx2.HTTPError as error:
                if pause_seconds is None or not _may_pass(error):
                    # Only the host is named, because the path of a webhook is often its secret.
                    self._say(f"an alert did not reach ALERT_WEBHOOK_URL at {urlsplit(self._webhook).hostname}: {reason(error)}")
                    return
                time.sleep(pause_seconds)
            else:
                return


def _may_pass(error: httpx2.HTTPError) -> bool:
    return not isinstance(error, httpx2.HTTPStatusError) or error.response.status_code in MAY_PASS
