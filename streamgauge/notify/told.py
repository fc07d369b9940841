"""What has been told of each incident, and how far the queries were, in a file: a process that begins anew goes on from there."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from infrastructure.errors import StreamgaugeError
from infrastructure.storage.paths import bytes_of, write_whole
from infrastructure.text import utc_text
from streamgauge.notify.incidents import Incident


class Told:
    """The last level of each incident that a way took, by the name of the way. Raises StreamgaugeError if `file` is damaged.

    watermarks: the newest of each query.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            found = dict(orjson.loads(bytes_of(file) or b"{}"))
            self._levels: dict[str, dict[str, str]] = {way: dict(levels) for way, levels in found.get("levels", {}).items()}
            self.watermarks = {query: datetime.fromisoformat(at) for query, at in found.get("watermarks", {}).items()}
        except (ValueError, TypeError, AttributeError) as error:
            msg = f"{file} is damaged: {error}; delete it, and alerts on incidents that still last are sent again"
            raise StreamgaugeError(msg) from error

    def keep(self, incidents: Sequence[Incident], watermarks: Mapping[str, datetime]) -> None:
        """Forgets other incidents than these, and keeps the watermarks."""
        names = {one.name for one in incidents}
        levels = {way: {name: level for name, level in told.items() if name in names} for way, told in self._levels.items()}
        if (levels, watermarks) != (self._levels, self.watermarks):
            self._levels, self.watermarks = levels, dict(watermarks)
            self._write()

    def new(self, way: str, incidents: Sequence[Incident]) -> list[Incident]:
        """Those that are to be told."""
        levels = self._levels.get(way, {})
        return [one for one in incidents if one.level not in {None, levels.get(one.name, "resolved")}]

    def add(self, way: str, incident: Incident) -> None:
        """The way took the incident."""
        self._levels.setdefault(way, {})[incident.name] = str(incident.level)
        self._write()

    def _write(self) -> None:
        found: dict[str, Any] = {"levels": self._levels, "watermarks": {query: utc_text(at) for query, at in self.watermarks.items()}}
        write_whole(self._file, orjson.dumps(found))
