"""One cluster for the tests of a file."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from clusters import Cluster, running_cluster

from infrastructure.settings import Settings


@pytest.fixture(scope="module")
def shared_cluster(registry: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The cluster, beside the worker's Kafka and schema registry."""
    with running_cluster(replace(registry, home=tmp_path_factory.mktemp("cluster"))) as made:
        yield made


@pytest.fixture
def cluster(shared_cluster: Cluster, fresh_registry: Settings) -> Cluster:
    """The cluster, with a new home for what a driver writes, and every topic empty."""
    shared_cluster.settings = replace(shared_cluster.settings, home=fresh_registry.home)
    return shared_cluster
