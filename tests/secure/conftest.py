"""One broker for all: what is made there has a name of its own."""

import uuid
from collections.abc import Callable, Iterator

import pytest
from brokers import Secured, running_secured
from confluent_kafka import KafkaException
from rights import Right
from running import eventually

from infrastructure.settings import Settings


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """The broker, with every topic."""
    with running_secured(tmp_path_factory.mktemp("secured")) as found:
        yield found


@pytest.fixture
def allowed(secured: Secured) -> Callable[[str, list[Right]], str]:
    """Makes a user who may do just that; returns the properties of a client that is it."""

    def allow(name: str, rights: list[Right]) -> str:
        name = f"{name.replace(' ', '-')}-{uuid.uuid4().hex[:6]}"
        properties = secured.user(name)
        secured.grant(name, rights)
        settings = secured.come("SCRAM", properties)
        eventually(lambda: _answers(settings), f"the broker to know {name}")
        return properties

    return allow


def _answers(settings: Settings) -> bool:
    """Whether the broker answers this client; it does not while it does not know the user, or is slow."""
    try:
        return bool(settings.kafka.admin().list_topics(timeout=5))
    except KafkaException:
        return False
