"""The one kind of error that a user is shown: a sentence, never a traceback."""


class StreamgaugeError(Exception):
    """Something a person can mend. Its message says what was found, what was expected and what to do."""
