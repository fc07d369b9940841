"""Reports what the pipeline cannot fix by itself: to topic `alerts` and, if configured, to a webhook."""

import contextlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal

import orjson
from confluent_kafka import KafkaException

from contract.topics import ALERTS
from infrastructure.kafka.cluster import close_producer
from infrastructure.settings import Settings
from infrastructure.text import utc_text
from infrastructure.web.outbox import LAST_ALERTS_SECONDS, MAX_WAITING
from infrastructure.web.webhook import Webhook


class Alerts:
    """Sends alerts. Callers never wait, and sending errors never reach them."""

    def __init__(self, settings: Settings, say: Callable[[str], None]) -> None:
        self._producer = settings.kafka.producer({"queue.buffering.max.messages": MAX_WAITING})
        self._webhook = Webhook(settings.alert_webhook_url, say)

    def send(self, level: Literal["warning", "error", "resolved"], query: str, what: str, detail: str = "") -> None:
        """Sends one alert. level: `resolved` ends an earlier warning. what: one line on what happened to `query`. detail: text of any length."""
        alert = {"time": utc_text(datetime.now(UTC)), "level": level, "query": query, "what": what, "detail": detail}
        with contextlib.suppress(BufferError, KafkaException):
            self._producer.produce(ALERTS.name, key=query, value=orjson.dumps(alert))
            self._producer.poll(0)
        self._webhook.send(alert)

    def close(self) -> None:
        """Sends the pending alerts, for at most LAST_ALERTS_SECONDS to each of both."""
        self._webhook.close()
        close_producer(self._producer, LAST_ALERTS_SECONDS)
