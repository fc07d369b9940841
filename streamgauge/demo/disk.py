"""The disk of STREAMGAUGE_HOME: producers stop before it is full, so that everything else can go on."""

import shutil
import time
from collections.abc import Callable, Sequence

from contract.domains import TOPICS
from infrastructure.process.waiting import Say
from infrastructure.settings import Settings
from infrastructure.text import size_text
from streamgauge.demo.supervision import Supervised
from streamgauge.platform.kafka import PARTITION_BYTES, SEGMENT_BYTES

LOOK_SECONDS = 60
EASE_BYTES = 5_000_000_000
"""With less free space, the demo warns."""
LEAST_BYTES = 1_000_000_000
"""With less free space, the producers stop."""
RESUME_BYTES = 2_000_000_000
"""With this much free space, they start again."""


class DiskSpace:
    """Looks at the free space once a minute, and stops and starts `producers` accordingly. say: called with what is done, and why."""

    def __init__(self, settings: Settings, producers: Sequence[Supervised], say: Say, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings, self._producers, self._say, self._clock = settings, producers, say, clock
        self._due = clock()
        self._is_scarce, self._is_paused = False, False

    def look(self) -> None:
        """Checks the free space when that is due."""
        if self._clock() < self._due:
            return
        self._due = self._clock() + LOOK_SECONDS
        free = shutil.disk_usage(self._settings.home).free
        place = f"{size_text(free)} are free under STREAMGAUGE_HOME={self._settings.home}"
        if self._is_paused:
            if free >= RESUME_BYTES:
                self._is_paused = False
                for producer in self._producers:
                    producer.resume()
                self._say(f"{place}: the producers start again")
        elif free < LEAST_BYTES:
            self._is_paused = True
            for producer in self._producers:
                producer.pause()
            self._say(
                f"{place}: the producers stop until {size_text(RESUME_BYTES)} are free, and everything else continues; delete something"
            )
        elif free < EASE_BYTES and not self._is_scarce:
            self._say(f"warning: {place}; with less than {size_text(LEAST_BYTES)} the producers stop: delete something")
        self._is_scarce = free < EASE_BYTES


def most_bytes_of_topics() -> int:
    """The maximum disk space of all topics that are not compacted, on the embedded broker, which deletes the oldest records."""
    return sum(topic.partitions for topic in TOPICS if not topic.is_compacted) * (PARTITION_BYTES + SEGMENT_BYTES)
