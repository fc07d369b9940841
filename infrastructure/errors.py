"""The error types shown to users as a sentence, without a traceback."""

from collections.abc import Collection, Iterable
from typing import ClassVar

from infrastructure.text import without_credentials


class StreamgaugeError(Exception):
    """An error that a person can fix. The message says what was found, what was expected and what to do. Credentials in URLs are masked.

    exit_code: of the command that ends with it.
    """

    exit_code = 2

    def __init__(self, message: str) -> None:
        # The name of a file may hold bytes that are not UTF-8: such a message could be sent nowhere.
        super().__init__(without_credentials(message).encode(errors="replace").decode())


class Unavailable(StreamgaugeError):  # noqa: N818 - it names the state, which may pass
    """A server does not answer, or a topic refuses what is written to it. A retry may succeed. server: what messages call it."""

    server: ClassVar[str]
    exit_code = 3


def raise_all(problems: Iterable[StreamgaugeError]) -> None:
    """Raises one StreamgaugeError with the messages of all problems, if there are any."""
    if messages := dict.fromkeys(map(str, problems)):
        raise StreamgaugeError("; ".join(messages))


def check_names(kind: str, names: Iterable[object], existing: Collection[object]) -> None:
    """Raises StreamgaugeError if one of `names` is not in `existing`. kind: what they name, such as "table"."""
    if unknown := [name for name in names if name not in existing]:
        msg = f"no {kind} {', '.join(map(str, unknown))}; there are {', '.join(map(str, existing))}"
        raise StreamgaugeError(msg)
