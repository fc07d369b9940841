"""Notices that the thread of a Kafka producer in Spark's driver has died: whatever uses the producer then waits forever.

Kafka's client itself only logs that. All queries share one producer: Spark opens one for each set of options.
"""

import re
from typing import Any

from pyspark.sql import SparkSession

from pipeline.monitoring.mbeans import MBeanNames

DIED = (
    "the thread of Kafka's client in Spark's JVM has died, and no query can write to Kafka (the cause is in spark.log, at kafka-producer-network-thread; "
    "most likely a result topic refuses batches: see its max.message.bytes). The pipeline ends; start it again, and the queries continue from their checkpoints"
)
OPEN = re.compile(r"\bkafka\.producer:type=app-info,id=([^,\]]+)")
_MORE_THREADS = 100
"""How many may start between the moment when threads are counted and when they are listed."""
THREAD = re.compile(r"kafka-producer-network-thread \| ([^,\]]+)")


class ProducerWatch:
    """Compares the producers that are open with the threads that run. Pure."""

    def __init__(self) -> None:
        self._have_run: set[str] = set()
        self._suspects: set[str] = set()

    def look(self, open_producers: str, threads: str) -> bool:
        """Whether an open producer has no thread, at this look and the one before: a producer that is being closed has none for a moment.

        open_producers: the names of their MBeans, as one text. threads: the names of all threads, as one text.
        """
        running = set(THREAD.findall(threads))
        self._have_run |= running
        before, self._suspects = self._suspects, (set(OPEN.findall(open_producers)) & self._have_run) - running
        died = before & self._suspects
        self._have_run -= died  # said once
        return bool(died)


class Producers:
    """The producers of Spark's driver. With a local master, these are all."""

    def __init__(self, spark: SparkSession) -> None:
        """Raises Py4JError or ConnectionError, as `have_died`, if Spark's JVM has ended."""
        context: Any = spark.sparkContext
        lang, self._new_array, self._watch = context._jvm.java.lang, context._gateway.new_array, ProducerWatch()
        self._open = MBeanNames(spark, "kafka.producer:type=app-info,*")
        self._thread, self._object = lang.Thread, lang.Object
        # By reflection: py4j does not take an array of threads as one of objects.
        types = self._new_array(lang.Class, 1)
        types[0] = lang.Class.forName("[Ljava.lang.Object;")
        self._to_text = lang.Class.forName("java.util.Arrays").getMethod("toString", types)

    def have_died(self) -> bool:
        """Whether one of them has died since the last call."""
        return self._watch.look(self.open(), self.threads())

    def open(self) -> str:
        """The names of the MBeans of open producers, as one text."""
        return self._open.text()

    def threads(self) -> str:
        """The names of the driver's threads, as one text."""
        arguments = self._new_array(self._object, 1)
        arguments[0] = self._new_array(self._thread, self._thread.activeCount() + _MORE_THREADS)
        self._thread.enumerate(arguments[0])
        return str(self._to_text.invoke(None, arguments))
