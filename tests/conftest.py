"""What the tiers share: real brokers, a real object store."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from object_store import CREDENTIALS, ObjectStore, running_store
from running import running_platform, running_registry

from streamgauge.settings import Settings

LONGEST = {"test_delta_archives.py", "test_ingest.py", "test_programs.py", "test_run_wikimedia.py", "test_supervision.py", "test_verify.py"}


def pytest_configure() -> None:
    """Lets Ctrl-C be tested: the workers of pytest-xdist ignore it, and what they start would inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the files that take longest first, so that the workers end at about the same time."""
    items.sort(key=lambda item: item.path.name not in LONGEST)


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A broker for the session, which tests share: each is to use topics or homes of its own."""
    yield from running_platform(tmp_path_factory.mktemp("home"))


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Settings]:
    """A broker, topics and home that no other test has touched."""
    yield from running_platform(tmp_path / "home")


@pytest.fixture(scope="session")
def registry(settings: Settings) -> Iterator[Settings]:
    """The session's settings, with their schema registry; started for the first test that asks for it."""
    yield from running_registry(settings)


@pytest.fixture
def fresh_registry(fresh: Settings) -> Iterator[Settings]:
    """The settings of `fresh`, with a schema registry that no other test has touched."""
    yield from running_registry(fresh)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    """An object store with an empty bucket `bucket`, and its credentials in the environment of whatever is started from now on."""
    for name, text in CREDENTIALS.items():
        monkeypatch.setenv(name, text)
    with running_store("bucket") as running:
        yield running
