"""What the tests of one worker share: a broker, a schema registry, a Spark session and an object store, each started for the first test that asks."""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import hypothesis
import pytest
from databases import BINARIES, Postgres, running_postgres
from object_store import CREDENTIALS, ObjectStore
from playwright.sync_api import Browser, sync_playwright
from pyspark.sql import SparkSession
from running import (
    OBJECT_STORE,
    forget_surroundings,
    restore_sql_settings,
    running_broker,
    running_platform,
    running_registry,
    settings_on_free_ports,
    shared_spark,
    sql_settings,
    stop_shared_spark,
)
from topic_reset import delete_subjects, empty_topics
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from contract.topics import topic_prefix
from infrastructure.process.ports import free_ports
from infrastructure.settings import Settings
from streamgauge.platform.kafka import EmbeddedKafka

# The same examples in every run, however slow the machine is.
hypothesis.settings.register_profile("streamgauge", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("streamgauge")

TOGETHER = (("tests/cluster/", "tests/e2e/"), ("tests/secure/",), ("tests/dashboard/test_browser",))
"""Prefixes of the files that one worker runs, as if they were one file. These start first, because they take longest."""

QUIET_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"]
"""Flags of Chromium."""

NOT_HERE = "not possible on this machine"
"""The reason why a test is skipped where the kernel does not allow it."""


def group_of(nodeid: str) -> str:
    """The tests that one worker runs one after the other: those of a file, or of several TOGETHER.

    Whole programs keep all cores busy for as long as they run: two at the same time take more than twice as long. The broker that requires
    authentication and the browser are started once if one worker runs all tests that use them.
    """
    return next((prefixes[0] for prefixes in TOGETHER if nodeid.startswith(prefixes)), nodeid.partition("::")[0])


class Scheduling(LoadFileScheduling):
    """Gives each worker one group of tests after the other."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mixes the files of all tiers: tests with a broker often wait, and those of Spark use the cores meanwhile."""
    first = [prefixes[0] for prefixes in TOGETHER]

    def place(item: pytest.Item) -> tuple[int, int]:
        group = group_of(item.nodeid)
        return (first.index(group), 0) if group in first else (len(first), crc32(group.encode()))

    items.sort(key=place)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Lets whole programs go first: they cost as long as they run. This holds for what the test's process starts, too."""
    if group_of(item.nodeid) != TOGETHER[0][0] and os.nice(0) == 0:
        os.nice(5)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    """Called by pytest-xdist."""
    return Scheduling(config, log)


def pytest_configure() -> None:
    """Keeps tests off the platform that the environment names, and lets Ctrl-C be tested: the workers of pytest-xdist ignore it."""
    forget_surroundings()
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Ends what tests shared beyond fixtures. In CI a skipped test fails the run, unless the machine forbids it: nobody would prove what it proves."""
    stop_shared_spark()
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", ()) if os.environ.get("CI") and reporter is not None else ()
    if any(NOT_HERE not in str(report.longrepr) for report in skipped) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """The worker's broker, with every topic. A test that uses this one writes to topics of its own only."""
    yield from running_platform(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="session")
def registry(settings: Settings) -> Iterator[Settings]:
    """The worker's broker and schema registry."""
    yield from running_registry(settings)


@pytest.fixture
def soon_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Kafka that does not answer is given up after a second, and not after five or ten."""
    for constant in (
        "infrastructure.kafka.result_table.ANSWER_SECONDS",
        "infrastructure.kafka.topic_ends.METADATA_SECONDS",
        "pipeline.monitoring.alerts.LAST_ALERTS_SECONDS",
        "pipeline.sources.kafka.METADATA_SECONDS",
    ):
        monkeypatch.setattr(constant, 1)


@pytest.fixture
def fresh(settings: Settings, tmp_path: Path) -> Settings:
    """A new home, and the worker's broker with every topic empty. Do not stop this broker: see `own_broker`."""
    empty_topics(settings.kafka)
    home = tmp_path / "home"
    home.mkdir()
    return replace(settings, home=home)


@pytest.fixture
def fresh_registry(fresh: Settings, registry: Settings) -> Settings:
    """As `fresh`, with the worker's schema registry, which has no schema."""
    delete_subjects(registry.registry_url)
    return fresh


@pytest.fixture
def with_prefix(fresh_registry: Settings, tmp_path: Path) -> Iterator[Callable[[str], Settings]]:
    """Gives `fresh_registry` with a prefix of topics, and a home for each prefix."""
    yours = {"kafka_bootstrap_servers": fresh_registry.bootstrap_servers, "schema_registry_url": fresh_registry.registry_url}

    def settings(prefix: str) -> Settings:
        topic_prefix.cache_clear()  # as in a process of its own
        return replace(fresh_registry, home=tmp_path / f"home-{prefix}", topic_prefix=prefix, **yours)

    yield settings
    topic_prefix.cache_clear()


@pytest.fixture
def without_registry(fresh: Settings) -> Settings:
    """As `fresh`, at a port for a schema registry where none runs."""
    return replace(fresh, registry_port=free_ports(1)[0])


@pytest.fixture(scope="session")
def second_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Settings of the worker's second broker, which does not run before a test starts it."""
    chosen = settings_on_free_ports(tmp_path_factory.mktemp("home"))
    yield chosen
    EmbeddedKafka(chosen).stop()


@pytest.fixture
def own_broker(second_broker: Settings) -> Settings:
    """The worker's second broker, for a test that stops or kills it: it runs, with every topic empty and nothing but its data in its home."""
    running_broker(second_broker)
    empty_topics(second_broker.kafka)
    for folder in (second_broker.checkpoints, second_broker.lake):
        shutil.rmtree(folder, ignore_errors=True)
    return second_broker


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """The worker's Spark session. Commands that `running.streamgauge` runs use the same one."""
    return shared_spark()


@pytest.fixture(autouse=True)
def _same_settings() -> Iterator[None]:
    """Gives the shared session its settings again: a command that a test runs in this process gives it others."""
    before = sql_settings()
    yield
    restore_sql_settings(before)


@pytest.fixture(autouse=True)
def _same_signal_handlers() -> Iterator[None]:
    """Sets the handlers of signals again: a program that a test runs in this process sets its own."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def object_store() -> Iterator[ObjectStore]:
    """The worker's object store, at the address that the worker's Spark session has."""
    OBJECT_STORE.start()
    yield OBJECT_STORE
    OBJECT_STORE.stop()


@pytest.fixture
def store(object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    """The object store with an empty bucket `bucket`, and its credentials in the environment. A request that fails is not tried again."""
    for name, text in {**CREDENTIALS, "AWS_MAX_ATTEMPTS": "1"}.items():
        monkeypatch.setenv(name, text)
    object_store.empty("bucket")
    return object_store


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """The worker's PostgreSQL."""
    if BINARIES is None:
        pytest.skip("no PostgreSQL; apt install postgresql")
    with running_postgres(free_ports(1)[0]) as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/results.db"
    return request.getfixturevalue("postgres").new_database()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium: the machine's own, or Playwright's."""
    with sync_playwright() as playwright:
        installed = next(
            filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), playwright.chromium.executable_path
        )
        if not os.path.exists(installed):  # noqa: PTH110 - Playwright's path may be empty
            pytest.skip("no Chromium: neither on the PATH nor Playwright's own; `apt install chromium` or `playwright install chromium`")
        browser = playwright.chromium.launch(executable_path=installed, args=QUIET_FLAGS)
        yield browser
        browser.close()
