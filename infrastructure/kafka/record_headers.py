"""The headers of Kafka records."""

import gc
from operator import methodcaller
from typing import Any

from confluent_kafka import Message

NO_NAME = "\ufffd"
_headers = methodcaller("headers")
"""Raises SystemError for a name that is not UTF-8; `message.headers()` does so until Python has specialized the call, and then crashes later."""


def headers_of(message: Message) -> list[tuple[str, Any]]:
    """Name and value of each header. A name that is not UTF-8, as other programs can write it, is NO_NAME."""
    try:
        headers: list[tuple[str, Any]] = _headers(message) or []
    except SystemError:
        # From now on it returns this list, with null pointers for such names, at which Python crashes. The collector alone leaves them out.
        headers = _headers(message)
        headers[:] = [header if len(gc.get_referents(header)) == len(header) else (NO_NAME, header[1]) for header in headers]
    return headers
