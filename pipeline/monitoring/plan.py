"""The physical plan of a query that runs: the steps that Spark's own UI draws."""

import re
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

Plan = list[dict[str, Any]]
MAX_STEP_CHARACTERS = 120
_IDS = re.compile(r"#\d+L?|, \[plan_id=\d+\]")
_EMPTY = "LocalTableScan"
"""What Spark puts in the place of a source that has no new records."""


def plan_of(spark: SparkSession, running: StreamingQuery) -> Plan:
    """The steps of the newest micro-batch, the result first. Empty if the batch has no records: its plan has no source.

    Each has a name ("Exchange"), a detail (its expressions, at most MAX_STEP_CHARACTERS characters), and inputs: the places in this list of the
    steps that give it rows.
    """
    execution = running._jsq.streamingQuery().lastExecution()
    if execution is None:
        return []
    sql = spark._jvm.org.apache.spark.sql.execution  # type: ignore[union-attr]
    graph = sql.ui.SparkPlanGraph.apply(sql.SparkPlanInfo.fromSparkPlan(execution.executedPlan()))
    # Besides steps, the graph has a node around all that is compiled together.
    steps = [node for node in _listed(graph.allNodes()) if not node.name().startswith("WholeStageCodegen")]
    place = {node.id(): number for number, node in enumerate(steps)}
    inputs: list[list[int]] = [[] for _ in steps]
    for edge in _listed(graph.edges()):
        inputs[place[edge.toId()]].append(place[edge.fromId()])
    plan = [
        {"name": node.name().strip(), "detail": _detail(node.name(), node.desc()), "inputs": of_step}
        for node, of_step in zip(steps, inputs, strict=True)
    ]
    has_source = any(not step["inputs"] and step["name"] != _EMPTY for step in plan)
    return plan if has_source else []


def _listed(sequence: JavaObject) -> list[Any]:
    return [sequence.apply(place) for place in range(sequence.size())]


def _detail(name: str, description: str) -> str:
    return _IDS.sub("", description.removeprefix(name)).strip()[:MAX_STEP_CHARACTERS]
