"""What keeps Spark from starting is one line."""

import pwd

import pytest
from messages import refused

from contract.settings import Settings
from pipeline.spark import session


@pytest.fixture
def start(monkeypatch, tmp_path):
    """Starts a session that has nothing to do with others of this process."""
    monkeypatch.setattr(session.SparkContext, "_active_spark_context", None)
    return lambda **settings: session.spark_session(Settings(home=tmp_path, **settings))


def test_a_user_without_a_name(start, monkeypatch):
    def unknown(number):
        raise KeyError(number)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    with refused("has no name on this machine", "/etc/passwd"):
        start()


def test_java_options_with_an_open_quotation(start):
    with refused("STREAMGAUGE_DRIVER_JAVA_OPTIONS is", "each quotation mark closed"):
        start(driver_java_options="-Dname='a b")
