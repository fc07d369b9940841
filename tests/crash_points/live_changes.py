"""The case of the live producer: a stream that this process serves, and what is in the topic."""

from collections import Counter
from datetime import timedelta
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import orjson
from plain import START, read_topic
from running import free_ports
from sse_server import SseServer, hold

from infrastructure.settings import Settings
from producers.wikimedia.simulation import Simulation, simulate

STREAM = f"http://127.0.0.1:{free_ports(1)[0]}/v2/stream/recentchange"
_EVENTS: list[dict[str, Any]] = []


def live_changes(settings: Settings, number: int) -> None:
    """Ten more events. The file tells the program that is killed, which is another process, how many there are."""
    if number == 0:
        _EVENTS.clear()
        Thread(target=SseServer(_EVENTS, [hold], "127.0.0.1", urlsplit(STREAM).port or 0).serve_forever, daemon=True).start()
    simulation = Simulation(START + timedelta(hours=number), seed=number, limit=10)
    _EVENTS.extend(orjson.loads(text) for text in simulate(simulation))
    (settings.home / "logs").mkdir(exist_ok=True)
    (settings.home / "logs" / "events").write_text(str(len(_EVENTS)))


def missing(settings: Settings) -> int:
    """How many events are not in the topic."""
    return int((settings.home / "logs" / "events").read_text()) - len(_ids(settings))


def delivered(settings: Settings) -> str:
    count = missing(settings)
    return "all events in the topic" if count == 0 else "events that are not in the topic"


def lost_or_doubled(settings: Settings) -> list[str]:
    found = _ids(settings)
    ids = [event["meta"]["id"] for event in _EVENTS]
    return [f"{event} is {found[event]} times in the topic" for event in ids if found[event] != 1]


def _ids(settings: Settings) -> Counter[str]:
    return Counter(dict(record.headers())["event_id"].decode() for record in read_topic(settings, "wikimedia"))
