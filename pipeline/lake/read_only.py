"""Tells queries of the lake's tables from all other statements, by Spark's plans of a statement and never by its text."""

from collections.abc import Collection, Iterator
from typing import Any

from pyspark.sql import SparkSession

from infrastructure.errors import StreamgaugeError

_NODES = frozenset(
    [
        "Aggregate",
        "AsOfJoin",
        "CTERelationDef",
        "CTERelationRef",
        "Deduplicate",
        "Distinct",
        "Except",
        "Expand",
        "Filter",
        "Generate",
        "GlobalLimit",
        "Intersect",
        "Join",
        "LateralJoin",
        "LimitAll",
        "LocalLimit",
        "LocalRelation",
        "Offset",
        "OneRowRelation",
        "OneRowRelation$",
        "PipeOperator",
        "Pivot",
        "Project",
        "Range",
        "RebalancePartitions",
        "Repartition",
        "RepartitionByExpression",
        "ResolvedHint",
        "ResolvedInlineTable",
        "Sample",
        "Sort",
        "Subquery",
        "SubqueryAlias",
        "Tail",
        "Union",
        "UnionLoop",
        "UnionLoopRef",
        "Unpivot",
        "Window",
        "WithCTE",
        "WithWindowDefinition",
        "PlanWithUnresolvedIdentifier",
        "RelationTimeTravel",
        "UnresolvedHaving",
        "UnresolvedHint",
        "UnresolvedInlineTable",
        "UnresolvedRelation",
        "UnresolvedSubqueryColumnAliases",
        "UnresolvedTVFAliases",
        "UnresolvedTableValuedFunction",
        "UnresolvedWith",
    ]
)
"""The nodes of a plan that compute rows from rows. None of them reads a table: after the analysis, only a view of a known table does."""
_VIEW = "View"
_OUTSIDE = {
    "CallMethodViaReflection": "reflect, java_method and try_reflect call any method of Java",
    **dict.fromkeys(
        ("FromAvro", "SchemaOfAvro", "ToAvro", "FromProtobuf", "ToProtobuf"), "functions of Avro and Protobuf read schemas from files"
    ),
    "ExpressionWithUnresolvedIdentifier": "`identifier` may name one of these functions",
}
"""Expressions that reach beyond the rows, and why."""
_OUTSIDE_NAMES = {
    **dict.fromkeys(("reflect", "java_method", "try_reflect"), _OUTSIDE["CallMethodViaReflection"]),
    **dict.fromkeys(("from_avro", "schema_of_avro", "to_avro", "from_protobuf", "to_protobuf"), _OUTSIDE["FromAvro"]),
}
WITHOUT_SUBSTITUTION_AND_PATHS = {"spark.sql.variable.substitute": "false", "spark.sql.runSQLOnFiles": "false"}
"""Spark replaces `${env:NAME}` in a statement, and reads text.`/any/file`, unless it has these settings."""


def parsed(spark: SparkSession, sql: str) -> Any:  # noqa: ANN401 - of the JVM
    """The plan of a statement before its analysis."""
    return spark._jsparkSession.sessionState().sqlParser().parsePlan(sql)


def check_statement(plan: Any) -> None:  # noqa: ANN401 - of the JVM
    """Raises StreamgaugeError unless the parsed statement is a query. The analysis of some other statements already executes them."""
    _check(plan, views=())


def check_plan(analysed: Any, views: Collection[str]) -> None:  # noqa: ANN401 - of the JVM
    """Raises StreamgaugeError unless a query, as analysed, reads nothing but the temporary views of these names."""
    _check(analysed, views)


def _check(plan: Any, views: Collection[str]) -> None:  # noqa: ANN401 - of the JVM
    for node, _ in nodes_with_parents(plan):
        kind = node.getClass().getSimpleName()
        if kind == _VIEW and node.isTempView() and node.desc().identifier().table().lower() in views:
            continue
        if kind not in _NODES:
            msg = "only queries are allowed, such as `select ... from ...`; this is another kind of statement, and it was not executed"
            raise StreamgaugeError(msg)
        for expression in _below(node.expressions()):
            why = _OUTSIDE.get(expression.getClass().getSimpleName()) or _OUTSIDE_NAMES.get(_function(expression))
            if why is not None:
                msg = f"a query may only read tables, and {why}; this statement was not executed"
                raise StreamgaugeError(msg)


def nodes_with_parents(plan: Any, parent: Any = None) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401 - as above
    """The nodes of a plan, also those of subqueries and common table expressions, which are inner children. Not those below views."""
    yield plan, parent
    if plan.getClass().getSimpleName() != _VIEW:
        for nodes in (plan.children(), plan.innerChildren()):
            for number in range(nodes.size()):
                yield from nodes_with_parents(nodes.apply(number), plan)


def _below(expressions: Any) -> Iterator[Any]:  # noqa: ANN401 - as above
    for number in range(expressions.size()):
        expression = expressions.apply(number)
        yield expression
        yield from _below(expression.children())


def _function(expression: Any) -> str:  # noqa: ANN401 - as above
    """The name of a function that is not analysed yet; empty for other expressions."""
    is_function = expression.getClass().getSimpleName() == "UnresolvedFunction"
    return str(expression.nameParts().last()).lower() if is_function else ""
