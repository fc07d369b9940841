"""Sends alerts by POST, as JSON that chat programs accept."""

from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import urlsplit

import httpx2
import orjson

from infrastructure.web.client import client, reason
from infrastructure.web.outbox import Finished, NotTaken, Outbox

ANSWER_SECONDS = 5
MAY_PASS = {429, 500, 502, 503, 504}
"""The statuses of a server that may answer later."""


class Form(NamedTuple):
    """The form in which a webhook takes alerts. body: of an alert, with its field `text`."""

    content_type: str
    body: Callable[[Mapping[str, str]], bytes]


JSON = Form("application/json", orjson.dumps)


class Webhook:
    """Sends alerts to `url`, as an Outbox does. Without an address, it does nothing. form: of its requests."""

    name = "webhook"

    def __init__(self, url: str, say: Callable[[str], None], form: Form = JSON) -> None:
        self._url, self._form = url, form
        if self._url:
            self._web = client(connect=ANSWER_SECONDS, silence=ANSWER_SECONDS, headers={"Content-Type": form.content_type})
            # Only the host is named, because the path of a webhook is often its secret.
            self._outbox = Outbox(f"ALERT_WEBHOOK_URL at {urlsplit(url).hostname}", say, self._web)

    def send(self, alert: Mapping[str, str], finished: Finished = lambda _: None) -> None:
        """Sends one alert."""
        if self._url:
            # Chat programs' webhooks show the field `text`.
            text = f"{alert['level']}: {alert['query']}: {alert['what']}"
            self._outbox.put(text, partial(self._post, self._form.body({**alert, "text": text})), finished)

    def close(self) -> None:
        """Sends the pending alerts, for at most outbox.LAST_ALERTS_SECONDS."""
        if self._url:
            self._outbox.close()

    def _post(self, body: bytes) -> None:
        try:
            answer = self._web.post(self._url, content=body)
            if any(before.status_code == HTTPStatus.MOVED_PERMANENTLY for before in answer.history):
                msg = "HTTP 301: the webhook has moved; correct the address"  # by RFC 9110, the next request is a GET
                raise NotTaken(msg, may_pass=False)
            answer.raise_for_status()
        except httpx2.HTTPError as error:
            may_pass = not isinstance(error, httpx2.HTTPStatusError) or error.response.status_code in MAY_PASS
            raise NotTaken(reason(error), may_pass=may_pass) from error
