"""One Spark session for the tier, and frames written as lists."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from pipeline.session import spark_session
from streamgauge.settings import Settings

RECORD_SCHEMA = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local session with the settings of the real one."""
    session = spark_session(Settings(home=tmp_path_factory.mktemp("spark-home"), cache=Settings.from_environment().cache))
    yield session
    session.stop()


@pytest.fixture
def records(spark: SparkSession) -> Callable[..., DataFrame]:
    """Makes records of `nest-logs`, partition 0, of values as they come."""
    from datetime import UTC, datetime

    def make(*values: bytes | None, topic: str = "nest-logs") -> DataFrame:
        received = datetime(2026, 1, 1, 12, tzinfo=UTC)
        rows: list[tuple[Any, ...]] = [(None, value, topic, 0, offset, received) for offset, value in enumerate(values)]
        return spark.createDataFrame(rows, RECORD_SCHEMA)

    return make
