"""The command line that serves the dashboard: on loopback only, for the names of loopback only, telling nobody about its use."""

import sys
from pathlib import Path

from streamgauge.settings import Settings

HOST = "127.0.0.1"
_APP = Path(__file__).with_name("app.py")
_THEME = Path(__file__).with_name("theme.toml")


def dashboard_command(settings: Settings) -> list[str]:
    """The command line of a dashboard at `settings.dashboard_port`; it reads its other settings from the environment, as every program does."""
    options = [
        f"--server.address={HOST}",
        f"--server.port={settings.dashboard_port}",
        # Another site's page whose name was made to point at loopback gets no answer.
        f"--server.allowedHosts={HOST}",
        "--server.allowedHosts=localhost",
        "--server.headless=true",
        "--server.fileWatcherType=none",
        "--browser.gatherUsageStats=false",
        f"--browser.serverAddress={HOST}",
        "--client.toolbarMode=minimal",
        "--client.showErrorDetails=type",
        f"--theme.base={_THEME}",
    ]
    return [sys.executable, "-m", "streamlit", "run", str(_APP), *options]


def dashboard_url(settings: Settings) -> str:
    """Where the dashboard is to be seen."""
    return f"http://{HOST}:{settings.dashboard_port}"
