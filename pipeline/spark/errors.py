"""Messages from Spark's exceptions."""

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from infrastructure.errors import StreamgaugeError

SparkFailure = (PySparkException, Py4JJavaError)
"""PySpark has an exception class for failures in a query's plan and tasks, but none for those thrown by Spark's scheduler."""
_WRAPPED = ("Exception thrown in awaitResult", "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED]")
"""Prefixes of messages that only say that there was another exception."""


def first_line(error: Exception) -> str:
    """The first line of the message. Of a wrapped exception, that of the one inside."""
    origin = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
    while origin is not None and origin.getCause() is not None and str(origin.getMessage()).startswith(_WRAPPED):
        origin = origin.getCause()
    text = str(error if origin is None else origin.getMessage())
    return next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)


@contextmanager
def spark_errors(failure: str) -> Iterator[None]:
    """Raises a StreamgaugeError for an exception of Spark: the text `failure`, and the first line of Spark's message."""
    try:
        yield
    except SparkFailure as error:
        msg = f"{failure}: {first_line(error)}"
        raise StreamgaugeError(msg) from error
