"""Frames written as lists."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from streaming import RECORD_SCHEMA, Stream

from infrastructure.settings import Settings


@pytest.fixture
def records(spark: SparkSession) -> Callable[..., DataFrame]:
    """Makes records of `nest-logs`, partition 0, of values as they come, with the noon of 2026-01-01 as timestamp and clock."""
    from datetime import UTC, datetime

    def make(*values: bytes | None, topic: str = "nest-logs") -> DataFrame:
        received = datetime(2026, 1, 1, 12, tzinfo=UTC)
        rows: list[tuple[Any, ...]] = [(None, value, topic, 0, offset, received, received) for offset, value in enumerate(values)]
        return spark.createDataFrame(rows, RECORD_SCHEMA)

    return make


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Callable[..., Stream]:
    """Makes a stream of a query, see streaming.Stream."""
    count = itertools.count()
    return lambda query, **options: Stream(spark, query, tmp_path / f"stream-{next(count)}", **options)


@pytest.fixture
def settings_of(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Settings]:
    """Makes the settings of environment variables."""

    def make(**variables: str) -> Settings:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return Settings.from_environment()

    return make
