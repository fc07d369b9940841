"""JSON in the result topics: UTC, ISO 8601 with Z, explicit nulls. Keys are canonical, so equal keys have equal bytes."""

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

_OPTIONS = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss'Z'", "ignoreNullFields": "false"}


def row_json(*columns: str) -> Column:
    """The columns as a JSON object; `window` becomes {"start", "end"}."""
    return F.to_json(F.struct(*columns), _OPTIONS)


def canonical_json(*columns: str) -> Column:
    """The columns as a JSON object with sorted names at every level: {"window":{"end":...,"start":...},"zip_code":...}."""
    ordered = [_canonical(name) for name in sorted(columns)]
    return F.to_json(F.struct(*ordered), _OPTIONS)


def _canonical(name: str) -> Column:
    if name == "window":
        return F.struct(F.col("window.end").alias("end"), F.col("window.start").alias("start")).alias("window")
    return F.col(name)
