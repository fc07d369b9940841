"""The one kind of error that a user is shown: a sentence, never a traceback."""

from contract.text import without_credentials


class StreamgaugeError(Exception):
    """Something a person can fix. Its message says what was found, what was expected and what to do, and no credentials of a URL."""

    def __init__(self, message: str) -> None:
        super().__init__(without_credentials(message))
