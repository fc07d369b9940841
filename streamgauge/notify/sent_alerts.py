"""A file with the alerts that were sent, and the watermarks of the queries, so that a new process continues from there."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from infrastructure.errors import StreamgaugeError
from infrastructure.rows import moment
from infrastructure.storage.paths import bytes_of, write_whole
from infrastructure.text import utc_text
from streamgauge.notify.incidents import Incident


class SentAlerts:
    """The last level of each incident that a channel accepted, by the name of the channel. Raises StreamgaugeError if `file` is damaged.

    watermarks: the newest one of each query.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            stored = dict(orjson.loads(bytes_of(file) or b"{}"))
            self._levels: dict[str, dict[str, str]] = {channel: dict(levels) for channel, levels in stored.get("levels", {}).items()}
            self.watermarks = {query: moment(at) for query, at in stored.get("watermarks", {}).items()}
        except (ValueError, TypeError, AttributeError) as error:
            msg = f"{file} is damaged: {error}; delete it, and alerts on incidents that still last are sent again"
            raise StreamgaugeError(msg) from error

    def keep(self, incidents: Sequence[Incident], watermarks: Mapping[str, datetime]) -> None:
        """Forgets all incidents but these, and stores the watermarks."""
        names = {incident.name for incident in incidents}
        levels = {channel: {name: level for name, level in sent.items() if name in names} for channel, sent in self._levels.items()}
        if (levels, watermarks) != (self._levels, self.watermarks):
            self._levels, self.watermarks = levels, dict(watermarks)
            self._write()

    def new(self, channel: str, incidents: Sequence[Incident]) -> list[Incident]:
        """The incidents for which an alert is to be sent."""
        levels = self._levels.get(channel, {})
        return [incident for incident in incidents if incident.level not in {None, levels.get(incident.name, "resolved")}]

    def add(self, channel: str, incident: Incident) -> None:
        """Records that the channel has accepted the incident."""
        self._levels.setdefault(channel, {})[incident.name] = str(incident.level)
        self._write()

    def _write(self) -> None:
        stored: dict[str, Any] = {"levels": self._levels, "watermarks": {query: utc_text(at) for query, at in self.watermarks.items()}}
        write_whole(self._file, orjson.dumps(stored))
