"""One broker for all: what is made there has a name of its own."""

import uuid
from collections.abc import Callable, Iterator

import pytest
from brokers import LISTENERS, Secured, SecuredKafka, listeners
from certificates import Authority
from rights import Right
from running import eventually

from streamgauge.kafka_topics import create_topics
from streamgauge.local.ports import free_ports
from streamgauge.settings import Settings


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """The broker, with every topic."""
    folder = tmp_path_factory.mktemp("secured")
    first, _, dashboard, registry, *others = free_ports(4 + len(LISTENERS))
    ports = dict(zip(LISTENERS, others, strict=True))
    cache = Settings.from_environment().cache
    no_registry = f"http://127.0.0.1:{registry}"
    settings = Settings(
        home=folder / "home",
        kafka_port=first,
        dashboard_port=dashboard,
        registry_port=registry,
        cache=cache,
        schema_registry_url=no_registry,
    )
    found = Secured(settings, ports, folder, Authority("tests"))
    broker = SecuredKafka(settings, ports, listeners(found))
    broker.start(detached=False)
    create_topics(settings.kafka)
    yield found
    broker.stop()


@pytest.fixture
def allowed(secured: Secured) -> Callable[[str, list[Right]], str]:
    """Makes a user who may do just that; returns the properties of a client that is it."""

    def allow(name: str, rights: list[Right]) -> str:
        name = f"{name.replace(' ', '-')}-{uuid.uuid4().hex[:6]}"
        properties = secured.user(name)
        secured.grant(name, rights)
        settings = secured.come("SCRAM", properties)
        eventually(lambda: settings.kafka.admin().list_topics(timeout=5), f"the broker to know {name}")
        return properties

    return allow
