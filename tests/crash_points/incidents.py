"""The case of `notify`: cameras that go offline and come back, and the alerts that were taken."""

import os
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import orjson
from plain import START, read_topic
from running import eventually

from contract.domains.nest import NEST_CAMERA_ALERTS
from infrastructure.kafka.writing import write_rows
from infrastructure.process.stop_signals import StopRequest
from infrastructure.settings import Settings
from infrastructure.storage.paths import bytes_of
from infrastructure.text import utc_text
from infrastructure.web.outbox import Finished
from streamgauge.notify.notifier import Notifier

SINCE = utc_text(START)


class Taking:
    """A way that takes each alert at once, into a file of the home: the program is killed before it is sent, too, and in its middle."""

    name = "file"

    def __init__(self, settings: Settings) -> None:
        self._file = settings.home / "taken"

    def send(self, alert: Mapping[str, str], finished: Finished) -> None:
        with self._file.open("ab") as file:
            file.write(b"\n" + orjson.dumps((alert["incident"], alert["level"])))
            file.flush()
            os.fsync(file)  # a server that has taken an alert keeps it when this machine fails
        finished(True)

    def close(self) -> None:
        """Nothing is pending."""

    def taken(self) -> Counter[tuple[str, str]]:
        """Incidents and levels. Half an alert is none."""
        lines = (bytes_of(self._file) or b"").split(b"\n")
        return Counter(tuple(orjson.loads(line)) for line in lines if line.endswith(b"]"))


def offline_and_back(settings: Settings, number: int) -> None:
    """A camera goes offline, and the one of the round before comes back."""
    rows = {}
    for camera, alert in ((number, "offline"), (number - 1, "back")):
        of = {"device_id": f"cam-{camera}", "incident": SINCE}
        rows[orjson.dumps(of)] = orjson.dumps({**of, "zip_code": "94107", "alert": alert, "since": SINCE})
    write_rows(settings.kafka, NEST_CAMERA_ALERTS.name, rows)


def notify(settings: Settings) -> None:
    """Until the file of what was told has all incidents as they are now."""
    notifier, stop = Notifier(settings, [Taking(settings)], lambda _: None), StopRequest()
    now = dict(_to_tell(settings))
    with ThreadPoolExecutor(1) as thread:
        following = thread.submit(notifier.follow, stop)
        try:
            eventually(lambda: _noted(settings) == now, "a note of every incident")
        finally:
            stop.set()
        following.result()


def noted(settings: Settings) -> str:
    return "all alerts noted" if _noted(settings) == dict(_to_tell(settings)) else "an alert that is not noted"


def never_or_too_often_taken(settings: Settings) -> list[str]:
    """A kill between an alert and its note makes it come twice."""
    taken = Taking(settings).taken()
    return [
        f"{level} of {incident} taken {taken[incident, level]} times"
        for incident, level in _to_tell(settings)
        if taken[incident, level] not in {1, 2}
    ]


def _to_tell(settings: Settings) -> list[tuple[str, str]]:
    """Each incident that began, and each that is over. The one before the first round was over when it was first seen."""
    found = []
    for record in read_topic(settings, NEST_CAMERA_ALERTS.name):
        row = orjson.loads(record.value())
        if row["device_id"] != "cam--1":
            found.append((f"camera {row['device_id']} {SINCE}", "warning" if row["alert"] == "offline" else "resolved"))
    return found


def _noted(settings: Settings) -> dict[str, str]:
    levels: dict[str, dict[str, str]] = orjson.loads(bytes_of(settings.home / "notify.json") or b"{}").get("levels", {})
    return levels.get(Taking.name, {})
