"""The error types shown to users as a sentence, without a traceback."""

from typing import ClassVar

from contract.text import without_credentials


class StreamgaugeError(Exception):
    """An error that a person can fix. The message says what was found, what was expected and what to do. Credentials in URLs are masked."""

    def __init__(self, message: str) -> None:
        super().__init__(without_credentials(message))


class Unavailable(StreamgaugeError):  # noqa: N818 - it names the state, which may pass
    """A server does not answer. A retry may succeed. server: what messages call it."""

    server: ClassVar[str]
