"""Which hosts a proxy of the environment is not asked for: NO_PROXY in, NO_PROXY out."""

import os

import pytest

from streamgauge.cli import bypass_proxies_on_loopback


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, "127.0.0.1,localhost"),
        ("", "127.0.0.1,localhost"),
        ("kafka.example.com,.corp", "kafka.example.com,.corp,127.0.0.1,localhost"),
        ("127.0.0.1,localhost", "127.0.0.1,localhost"),
        ("*", "*"),
    ],
)
def test_loopback_is_added_to_the_hosts_that_are_there(monkeypatch, before, after):
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    if before is not None:
        monkeypatch.setenv("NO_PROXY", before)
    bypass_proxies_on_loopback()
    assert os.environ["NO_PROXY"] == after
