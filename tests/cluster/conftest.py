"""A cluster of its own for each test."""

from collections.abc import Iterator

import pytest
from clusters import Cluster, running_cluster

from contract.settings import Settings


@pytest.fixture
def cluster(fresh_registry: Settings) -> Iterator[Cluster]:
    """The cluster, beside a Kafka and a schema registry of its own."""
    with running_cluster(fresh_registry) as made:
        yield made
