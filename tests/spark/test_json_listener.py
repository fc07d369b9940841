"""The progress of a batch reaches Python without a call of the JVM for each of its fields."""

# ruff: noqa: N802 - Spark's names

import threading

import orjson
from py4j.clientserver import ClientServerConnection

from pipeline.monitoring.progress import JsonListener


class Counting(JsonListener):
    """Notes the progress that it hears, and the calls of the JVM that its thread has made before."""

    def __init__(self, calls):
        self.calls, self.heard = calls, []

    def onQueryStarted(self, event):
        """Nothing."""

    def onQueryProgress(self, event):
        made = [command for thread, command in self.calls if thread == threading.get_ident()]
        self.heard.append((orjson.loads(event), made))
        self.calls.clear()

    def onQueryIdle(self, event):
        """Nothing."""

    def onQueryTerminated(self, event):
        """Nothing."""


def test_a_batchs_progress_is_read_in_a_few_calls(spark, tmp_path, monkeypatch):
    calls, send = [], ClientServerConnection.send_command

    def noted(connection, command):
        calls.append((threading.get_ident(), command))
        return send(connection, command)

    monkeypatch.setattr(ClientServerConnection, "send_command", noted)
    listener = Counting(calls)
    spark.streams.addListener(listener)
    rows = spark.readStream.format("rate").load().withWatermark("timestamp", "1 minute").dropDuplicates(["value", "timestamp"])
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    try:
        query.awaitTermination()
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        progress, _ = listener.heard[0]
        assert progress["runId"] == str(query.runId)
        assert max(len(made) for _, made in listener.heard) < 50, "each field was read by a call"
    finally:
        spark.streams.removeListener(listener)
