"""Where the dashboard listens, and by which names it answers."""

import pytest

from dashboard.server import dashboard_command, dashboard_url
from infrastructure.settings import Settings


@pytest.mark.parametrize(
    ("host", "names", "url"),
    [
        ("127.0.0.1", ["127.0.0.1", "localhost"], "http://127.0.0.1:8501"),
        ("0.0.0.0", ["127.0.0.1", "localhost"], "http://127.0.0.1:8501"),
        ("::1", ["127.0.0.1", "localhost", "::1"], "http://[::1]:8501"),
        ("10.0.0.5", ["127.0.0.1", "localhost", "10.0.0.5"], "http://10.0.0.5:8501"),
    ],
)
def test_it_answers_by_the_names_of_loopback_and_its_own(host, names, url):
    settings = Settings(dashboard_host=host)
    command = dashboard_command(settings)
    assert f"--server.address={host}" in command
    assert [option.split("=")[1] for option in command if "allowedHosts" in option] == names
    assert dashboard_url(settings) == url
