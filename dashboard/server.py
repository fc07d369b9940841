"""The command line that serves the dashboard: for the names of loopback, and that which it is told to listen on; telling nobody about its use."""

import sys
from pathlib import Path

from contract.settings import Settings

LOOPBACK = ("127.0.0.1", "localhost")
ALL_ADDRESSES = ("0.0.0.0", "::")  # noqa: S104 - compared with, to be left out
_APP = Path(__file__).with_name("app.py")
_THEME = Path(__file__).with_name("theme.toml")


def dashboard_command(settings: Settings) -> list[str]:
    """The command line of a dashboard at `settings.dashboard_port`; it reads its other settings from the environment, as every program does."""
    options = [
        f"--server.address={settings.dashboard_host}",
        f"--server.port={settings.dashboard_port}",
        # Another site's page whose name was made to point at this machine gets no answer.
        *(f"--server.allowedHosts={name}" for name in dict.fromkeys([*LOOPBACK, _name(settings)])),
        "--server.headless=true",
        "--server.fileWatcherType=none",
        "--browser.gatherUsageStats=false",
        f"--browser.serverAddress={_name(settings)}",
        "--client.toolbarMode=minimal",
        "--client.showErrorDetails=type",
        f"--theme.base={_THEME}",
    ]
    return [sys.executable, "-m", "streamlit", "run", str(_APP), *options]


def dashboard_url(settings: Settings) -> str:
    """Where the dashboard is to be seen."""
    return f"http://{_name(settings)}:{settings.dashboard_port}"


def _name(settings: Settings) -> str:
    """The name by which a browser is to ask for it; one that listens on all addresses is known by that of loopback only."""
    return LOOPBACK[0] if settings.dashboard_host in ALL_ADDRESSES else settings.dashboard_host
