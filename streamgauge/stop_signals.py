"""SIGTERM and SIGINT as an event that a program looks at where it can end in an orderly way."""

import signal
import threading


def stop_requested() -> threading.Event:
    """An event that either signal sets, from now on, instead of ending the program."""
    event = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: event.set())
    return event
