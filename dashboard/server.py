"""The command line that serves the dashboard: on loopback names and the configured host, without usage statistics."""

import sys
from pathlib import Path

from infrastructure.settings import Settings

LOOPBACK = ("127.0.0.1", "localhost")
ALL_ADDRESSES = ("0.0.0.0", "::")  # noqa: S104 - compared with, to be left out
_APP = Path(__file__).with_name("app.py")
_THEME = Path(__file__).with_name("theme.toml")


def dashboard_command(settings: Settings) -> list[str]:
    """The command line of a dashboard at `settings.dashboard_port`. It reads its other settings from the environment."""
    options = [
        f"--server.address={settings.dashboard_host}",
        f"--server.port={settings.dashboard_port}",
        # Against DNS rebinding: refuses requests under any other host name.
        *(f"--server.allowedHosts={name}" for name in dict.fromkeys([*LOOPBACK, _name(settings)])),
        "--server.headless=true",
        "--server.fileWatcherType=none",
        "--browser.gatherUsageStats=false",
        f"--browser.serverAddress={_name(settings)}",
        # A click on a chart sets filters that have a default.
        "--global.disableWidgetStateDuplicationWarning=true",
        # Python collects garbage by itself. Doing so after each drawing costs three times as much as the drawing.
        "--runner.postScriptGC=false",
        "--client.toolbarMode=minimal",
        "--client.showErrorDetails=type",
        f"--theme.base={_THEME}",
    ]
    return [sys.executable, "-P", "-m", "streamlit", "run", str(_APP), *options]


def dashboard_url(settings: Settings) -> str:
    name = _name(settings)
    return f"http://{f'[{name}]' if ':' in name else name}:{settings.dashboard_port}"


def _name(settings: Settings) -> str:
    """The host name for browsers. A dashboard that listens on all addresses is known by its loopback name only."""
    return LOOPBACK[0] if settings.dashboard_host in ALL_ADDRESSES else settings.dashboard_host
