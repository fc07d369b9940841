"""The thermostat and the smoke alarm of a home: how warm it is, when an alarm is raised, and when a battery is low.

They draw from a random stream of their own, so the cameras of a simulation see the same with and without them.
"""

import math
import random
from typing import NamedTuple

from producers.nest.documents import Part, alarm, thermostat
from producers.nest.homes import Home

_HOUR_MS = 3_600_000
_WARMEST_HOUR = 15
_COLDEST_NIGHT, _WARMEST_NIGHT, _DAY_ADDS, _WAVERS = 16.0, 20.0, 2.0, 0.5
_TARGET = 20.0
_OK = "ok"


class _Episode(NamedTuple):
    """What takes `field` to one of `states`: on average `every_ms` after the last time, for one of `lasts_ms`."""

    field: str
    states: tuple[str, ...]
    every_ms: int
    lasts_ms: tuple[int, int]


_EPISODES = (
    _Episode("smoke_alarm_state", ("warning", "emergency"), 2 * 24 * _HOUR_MS, (_HOUR_MS // 12, _HOUR_MS // 2)),
    _Episode("co_alarm_state", ("warning", "emergency"), 10 * 24 * _HOUR_MS, (_HOUR_MS // 12, _HOUR_MS // 2)),
    _Episode("battery_health", ("replace",), 10 * 24 * _HOUR_MS, (_HOUR_MS, 6 * _HOUR_MS)),
)


class HomeDevices:
    """The state of a home's devices that are not cameras."""

    def __init__(self, home: Home, seed: int) -> None:
        self._home = home
        self._rng = random.Random(f"devices {seed} {home.structure_id}")  # noqa: S311 - a simulation, no secret
        self._night = _COLDEST_NIGHT + self._rng.random() * (_WARMEST_NIGHT - _COLDEST_NIGHT)
        self._states = dict.fromkeys(_EPISODES, ("", 0))  # of each, until when; the first report begins with _OK

    def report(self, now_ms: int) -> tuple[Part, Part]:
        """The values of `thermostats` and `smoke_co_alarms` in a document at `now_ms`: both devices are connected at that moment."""
        if not self._home.has_devices:
            return {}, {}
        for episode, (state, until_ms) in self._states.items():
            if now_ms >= until_ms:
                self._states[episode] = self._next(episode, state, now_ms)
        states = {episode.field: state for episode, (state, _) in self._states.items()}
        return thermostat(self._home, now_ms, _TARGET, self._warmth(now_ms)), alarm(self._home, now_ms, states)

    def _next(self, episode: _Episode, state: str, now_ms: int) -> tuple[str, int]:
        if state == _OK:
            return self._rng.choice(episode.states), now_ms + self._rng.randrange(*episode.lasts_ms)
        return _OK, now_ms + int(self._rng.expovariate(1 / episode.every_ms))

    def _warmth(self, now_ms: int) -> float:
        """Degrees Celsius in steps of a half, as thermostats report them: warmest in the afternoon (UTC)."""
        day = math.cos((now_ms / _HOUR_MS - _WARMEST_HOUR) % 24 / 24 * math.tau)
        warmth = self._night + _DAY_ADDS * (1 + day) / 2 + _WAVERS * self._rng.random()
        return round(2 * warmth) / 2
