"""Repeats work at an interval until the program is stopped: the option `--every`."""

from collections.abc import Callable
from threading import Event

from contract.errors import StreamgaugeError

RETRY_SECONDS = 10


def repeat(work: Callable[[], None], seconds_between: float, stop: Event, say: Callable[[str], None], *, at_once: bool) -> None:
    """Calls `work` every `seconds_between` until `stop` is set; at_once: also before the first wait.

    Reports a StreamgaugeError, such as for a Kafka or an object store that cannot be reached, and tries again after RETRY_SECONDS, then
    after twice as long, and so on up to `seconds_between`.
    """
    retry, wait = RETRY_SECONDS, 0 if at_once else seconds_between
    while not stop.wait(wait):
        try:
            work()
        except StreamgaugeError as error:
            wait, retry = min(retry, seconds_between), retry * 2
            say(f"error: {error}; next attempt in {wait:.0f} s")
        else:
            retry, wait = RETRY_SECONDS, seconds_between
