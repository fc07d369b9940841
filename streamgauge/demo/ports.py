"""Other ports for the demo, where other programs use the usual ones."""

from collections.abc import Callable, Collection
from dataclasses import fields, replace
from functools import partial
from typing import Any

from infrastructure.errors import StreamgaugeError
from infrastructure.process.waiting import Say
from infrastructure.settings import Settings
from streamgauge.platform.kafka import EmbeddedKafka
from streamgauge.platform.listening import is_free, refuse_a_taken_port
from streamgauge.platform.registry import EmbeddedRegistry

USUAL = Settings()
_VARIABLES = {setting.name: setting.metadata["variable"] for setting in fields(Settings)}
_LAST_PORT = 65535


def on_free_ports(settings: Settings, say: Say, *, dashboard: bool) -> Settings:
    """The settings, with the next free port for each usual one that another program uses. Says which, and what other commands need.

    A port that differs from the usual one was chosen, and stays.
    """
    for name, check in _checks(settings, dashboard=dashboard).items():
        port = getattr(settings, name)
        if port != getattr(USUAL, name):
            continue
        try:
            check()
        except StreamgaugeError as error:
            host = settings.dashboard_host if name == "dashboard_port" else "127.0.0.1"
            named = {getattr(settings, other) for other in ("kafka_port", "registry_port", "dashboard_port")}
            free = next_free(port + 1, host, but=named)
            if free is None:
                raise
            change: dict[str, Any] = {name: free}
            settings = replace(settings, **change)
            taken = str(error).partition(";")[0]
            say(f"{taken}; the demo uses {free}, and other commands need {_VARIABLES[name]}={free}")
    return settings


def next_free(port: int, host: str, but: Collection[int] = ()) -> int | None:
    """The first port from `port` on that no other program uses, and that is not in `but`; None if there is none."""
    return next((other for other in range(port, _LAST_PORT + 1) if other not in but and is_free(other, host)), None)


def _checks(settings: Settings, *, dashboard: bool) -> dict[str, Callable[[], None]]:
    """A check for each port that the demo needs, by its setting. It raises StreamgaugeError when another program uses the port."""
    checks: dict[str, Callable[[], None]] = {}
    if not settings.kafka_bootstrap_servers:
        checks["kafka_port"] = EmbeddedKafka(settings).check_ports
    if not settings.schema_registry_url:
        checks["registry_port"] = EmbeddedRegistry(settings).check_ports
    if dashboard and is_free(0, settings.dashboard_host):  # on another host no port is free, as the dashboard's own check says
        checks["dashboard_port"] = partial(refuse_a_taken_port, settings.dashboard_host, settings.dashboard_port, "")
    return checks
