"""What the tests of labs share. The file that is graded is the solution, or the one that --exercise names."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from pyspark.sql import DataFrame, SparkSession
from running import forget_surroundings, shared_spark
from streaming import RECORD_SCHEMA, Stream, at

from streamgauge.workshop.labs import loaded


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--exercise", type=Path, help="the file to grade; the lab's solution without it")


def pytest_configure() -> None:
    forget_surroundings()


@pytest.fixture(scope="module")
def lab(request: pytest.FixtureRequest) -> ModuleType:
    """The file that is graded, as a module."""
    return loaded(request.config.getoption("exercise") or request.path.with_name("solution.py"))


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """One session for all labs that this process grades."""
    return shared_spark()


@pytest.fixture
def records(spark: SparkSession, request: pytest.FixtureRequest) -> Callable[..., DataFrame]:
    """Makes records of values, received at noon in the lab's TOPIC."""
    of_topic = request.module.TOPIC, 0
    return lambda *values: spark.createDataFrame(
        [(None, value, *of_topic, offset, at("12:00"), at("12:00")) for offset, value in enumerate(values)], RECORD_SCHEMA
    )


@pytest.fixture(scope="module")
def stream(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Stream]:
    """Makes a stream of a query, see streaming.Stream."""
    return lambda query, **options: Stream(spark, query, tmp_path_factory.mktemp("stream"), **options)
