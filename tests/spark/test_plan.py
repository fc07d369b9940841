"""The plan of a running query, as the Health page draws it."""

from pyspark.sql import functions as F  # noqa: N812
from streaming import plan_of_stream

from pipeline.monitoring.plan import MAX_STEP_CHARACTERS


def test_the_plan_leads_from_the_source_through_state_to_the_result(spark, tmp_path):
    names = spark.createDataFrame([(1, "one")], "value long, name string")
    rows = spark.readStream.format("rate").option("rowsPerSecond", 1000).load().withWatermark("timestamp", "1 minute")
    counts = rows.join(F.broadcast(names), "value", how="left").groupBy("name", F.window("timestamp", "1 minute")).count()
    plan = plan_of_stream(counts, tmp_path)
    names = [step["name"] for step in plan]
    assert names[0] == "WriteToDataSourceV2"
    assert {"StateStoreSave", "StateStoreRestore", "Exchange", "EventTimeWatermark", "MicroBatchScan", "BroadcastHashJoin"} <= set(names)
    assert not any("WholeStageCodegen" in name for name in names)
    assert len(plan[names.index("BroadcastHashJoin")]["inputs"]) == 2
    assert [step["name"] for step in plan if not step["inputs"] and "Scan" not in step["name"]] == []
    assert max(len(step["detail"]) for step in plan) <= MAX_STEP_CHARACTERS
    assert not any("#" in step["detail"] or "plan_id" in step["detail"] for step in plan), "Spark's own numbers tell a reader nothing"
