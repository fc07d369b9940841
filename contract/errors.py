"""The error type shown to users as a sentence, without a traceback."""

from contract.text import without_credentials


class StreamgaugeError(Exception):
    """An error that a person can fix. The message says what was found, what was expected and what to do. Credentials in URLs are masked."""

    def __init__(self, message: str) -> None:
        super().__init__(without_credentials(message))
