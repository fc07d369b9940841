"""What has been told of each incident, and how far the queries were, in a file: a process that begins anew goes on from there."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from contract.errors import StreamgaugeError
from contract.storage.paths import bytes_of, write_whole
from contract.text import utc_text
from streamgauge.notify.incidents import Incident


class Told:
    """The last level that was told of each incident that is still in a topic. Raises StreamgaugeError if `file` is damaged.

    watermarks: the newest of each query.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            found = dict(orjson.loads(bytes_of(file) or b"{}"))
            self._levels: dict[str, str] = dict(found.get("levels", {}))
            self.watermarks = {query: datetime.fromisoformat(at) for query, at in found.get("watermarks", {}).items()}
        except (ValueError, TypeError, AttributeError) as error:
            msg = f"{file} is damaged: {error}; delete it, and what lasts is told again"
            raise StreamgaugeError(msg) from error

    def new(self, incidents: Sequence[Incident], watermarks: Mapping[str, datetime]) -> list[Incident]:
        """Those of all incidents that are to be told. The others of which something was told are forgotten. watermarks: the newest of each query."""
        levels = {one.name: self._levels[one.name] for one in incidents if one.name in self._levels}
        if (levels, watermarks) != (self._levels, self.watermarks):
            self._levels, self.watermarks = levels, dict(watermarks)
            self._write()
        return [one for one in incidents if one.level not in {None, levels.get(one.name, "resolved")}]

    def add(self, incident: Incident) -> None:
        """The incident has been told."""
        self._levels[incident.name] = str(incident.level)
        self._write()

    def _write(self) -> None:
        found: dict[str, Any] = {"levels": self._levels, "watermarks": {query: utc_text(at) for query, at in self.watermarks.items()}}
        write_whole(self._file, orjson.dumps(found))
