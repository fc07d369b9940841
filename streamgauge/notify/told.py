"""What has been told of each incident, in a file: a process that begins anew tells nothing twice."""

from collections.abc import Sequence
from pathlib import Path

import orjson

from contract.errors import StreamgaugeError
from contract.storage.paths import text_of, write_whole
from streamgauge.notify.incidents import CROWDS, Incident


class Told:
    """The last level of each incident that is still in a topic. Raises StreamgaugeError if `file` is damaged."""

    def __init__(self, file: Path) -> None:
        self._file, text = file, text_of(file)
        try:
            self._levels: dict[str, str] = dict(orjson.loads(text or "{}"))
        except (ValueError, TypeError) as error:
            msg = f"{file} is damaged: {error}; delete it, and what lasts is told again"
            raise StreamgaugeError(msg) from error

    def new(self, incidents: Sequence[Incident]) -> list[Incident]:
        """Those of all incidents that are to be told. They count as told from now on, and the others are forgotten."""
        found = [one for one in incidents if one.level is not None and not self._is_told(one)]
        levels = {one.name: self._levels[one.name] for one in incidents if one.name in self._levels}
        levels |= {one.name: str(one.level) for one in found}
        if levels != self._levels:
            write_whole(self._file, orjson.dumps(levels))
            self._levels = levels
        return found

    def _is_told(self, incident: Incident) -> bool:
        told = self._levels.get(incident.name, "resolved")
        is_over = told == "resolved" and incident.name in self._levels and incident.query == CROWDS  # for ever: its hour is
        return is_over or incident.level == told
