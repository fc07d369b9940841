"""The names of MBeans in the JVM of Spark's driver, in which Kafka's clients publish their figures."""

from typing import Any

from pyspark.sql import SparkSession


class MBeanNames:
    """The names that match a pattern."""

    def __init__(self, spark: SparkSession, pattern: str) -> None:
        context: Any = spark.sparkContext
        jvm, new_array = context._jvm, context._gateway.new_array
        # By reflection: py4j calls no method of the server's own class, which Java does not export.
        types, self._pattern = new_array(jvm.java.lang.Class, 2), new_array(jvm.java.lang.Object, 2)
        types[0], types[1] = map(jvm.java.lang.Class.forName, ("javax.management.ObjectName", "javax.management.QueryExp"))
        self._pattern[0] = jvm.javax.management.ObjectName(pattern)
        self._query_names = jvm.java.lang.Class.forName("javax.management.MBeanServer").getMethod("queryNames", types)
        self._server = jvm.java.lang.management.ManagementFactory.getPlatformMBeanServer()

    def text(self) -> str:
        """The names, as one text. Raises Py4JError or ConnectionError if the JVM has ended."""
        return str(self._query_names.invoke(self._server, self._pattern).toString())
