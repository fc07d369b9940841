"""How far each query in real-time mode has read, at any time. Spark reports it only when a batch ends, which in this mode is at a checkpoint.

With a local master, tasks and their consumers are in the driver's JVM, where Kafka's client publishes its figures as MBeans.
"""

import contextlib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from pipeline.monitoring.mbeans import MBeanNames

_CLIENTS, _FETCHES = "kafka.consumer:type=consumer-metrics", "kafka.consumer:type=consumer-fetch-manager-metrics"
_NAME = re.compile(
    re.escape(_FETCHES) + r",client-id=(?P<client>consumer-(?P<query>[^,]+?)-[0-9a-f]{8}-[0-9a-f]{4}-[^,]+)"
    r",topic=(?P<topic>[^,]+),partition=(?P<number>\d+)"
)
STILL_READS_SECONDS = 2
"""A consumer that has not polled for longer waits for its task, and its lag is out of date."""


class Consumers:
    """The consumers of Spark's driver, each of which is named after its query (`KafkaTopic.reader`)."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark.sparkContext._jvm
        self._gauges = dict[tuple[str, str], Any]()
        self._names = MBeanNames(spark, f"{_FETCHES},*")

    def lags(self, partitions: Iterable[str]) -> dict[str, dict[str, int]]:
        """The lag of each query in each of `partitions` ("topic-0"). Empty if Spark's JVM has ended."""
        with contextlib.suppress(Py4JError, ConnectionError):
            names = self._names.text()
            self._gauges = {key: gauge for key, gauge in self._gauges.items() if key[0].partition(",")[2] in names}
            return lags_of(names, self._value, partitions)
        return {}

    def _value(self, name: str, attribute: str) -> float | None:
        gauge = self._gauges.get((name, attribute))
        if gauge is None:
            bean = self._jvm.javax.management.ObjectName(name)
            gauge = self._gauges[name, attribute] = self._jvm.com.codahale.metrics.jvm.JmxAttributeGauge(bean, attribute)
        value: float | None = gauge.getValue()  # None if the consumer was closed
        return value


def lags_of(names: str, value: Callable[[str, str], float | None], partitions: Iterable[str]) -> dict[str, dict[str, int]]:
    """The lag of each query in each of `partitions` ("topic-0"). Leaves out consumers that do not poll now, or have read nothing.

    names: the names of the MBeans of all consumers, as one text. value: returns an attribute of an MBean.
    """
    spelled = {name.replace(".", "_"): name for name in partitions}  # as Kafka's client spells them
    lag_by_query: dict[str, dict[str, int]] = {}
    for match in _NAME.finditer(names):
        partition = spelled.get(f"{match['topic']}-{match['number']}")
        if partition is None:
            continue
        lag, seconds = value(match[0], "records-lag"), value(f"{_CLIENTS},client-id={match['client']}", "last-poll-seconds-ago")
        if lag is not None and seconds is not None and not math.isnan(lag) and 0 <= seconds <= STILL_READS_SECONDS:
            lag_by_query.setdefault(match["query"], {})[partition] = round(lag)
    return lag_by_query


def read_to(lags: Mapping[str, int], topic_ends: Mapping[str, int]) -> dict[str, int]:
    """The next offset to read of each partition, from how far it is from the end of the topic. topic_ends: from before `lags` were read."""
    return {name: max(topic_ends[name] - lag, 0) for name, lag in lags.items() if name in topic_ends}
