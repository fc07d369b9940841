"""Sends the runs of queries to OpenLineage: what each reads and writes, and how it ends."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from os import environ
from queue import Full, Queue
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState, set_producer
from openlineage.client.facet_v2 import RunFacet, error_message_run, job_type_job, schema_dataset
from pyarrow import lib

from contract.domains import TOPICS
from infrastructure.errors import StreamgaugeError
from infrastructure.rows import Row
from infrastructure.settings import Settings
from infrastructure.text import printable, utc_text, without_credentials
from pipeline.catalog import all_queries
from pipeline.ingest.upsert import UpsertTable
from pipeline.query import Query
from pipeline.sinks.archives import Archive
from pipeline.sinks.topics import TopicSink
from pipeline.sources.kafka import KafkaTopic
from streamgauge.columns import schema_of

PRODUCER = "urn:streamgauge"
RUNNING_SECONDS = 60
"""The shortest time between two reports of a run that continues."""
MOST_WAITING = 1_000
"""Events that wait for the server. Further ones are lost."""
CLOSE_SECONDS = 5
_TYPES = {lib.Type_STRING: "string", lib.Type_BOOL: "boolean", lib.Type_INT64: "bigint", lib.Type_DOUBLE: "double"}
_TYPES |= {lib.Type_TIMESTAMP: "timestamp", lib.Type_STRUCT: "struct", lib.Type_LIST: "array", lib.Type_MAP: "map"}


class Lineage:
    """Sends events by OpenLineage's client, which its own variables or openlineage.yml configure. A thread of its own waits for the server.

    warn: gets a line when an event is not accepted, and the next only after another event was. Raises StreamgaugeError when nothing is configured.
    """

    def __init__(self, settings: Settings, warn: Callable[[str], None]) -> None:
        set_producer(PRODUCER)
        self._client, self._settings, self._warn = OpenLineageClient(), settings, warn
        if self._client.transport.kind == "console" and not (self._client.config.transport or {}).get("type"):
            msg = "OpenLineage is not configured; set OPENLINEAGE_URL to the address of its server, or write openlineage.yml"
            raise StreamgaugeError(msg)
        self._queries = {query.name: query for query in all_queries(settings)}
        self._columns = {topic.name: _fields(schema_of(topic.row)) for topic in TOPICS if topic.row.names()}
        self._running_at: dict[str, float] = {}
        self._is_lost = False
        self._waiting: Queue[tuple[str, RunEvent]] = Queue(MOST_WAITING)
        threading.Thread(target=self._send, name="OpenLineage", daemon=True).start()

    def tell(self, event: Row) -> None:
        """Sends an event of a query, one of metrics.events. For a run that continues, it sends at most one every RUNNING_SECONDS."""
        states = {
            "started": RunState.START,
            "progress": RunState.RUNNING,
            "terminated": RunState.FAIL if event.get("error") else RunState.COMPLETE,
        }
        state, run_id = states[event["event"]], event["run_id"]
        if state == RunState.RUNNING and time.monotonic() < self._running_at.get(run_id, 0):
            return
        self._running_at[run_id] = time.monotonic() + RUNNING_SECONDS
        if event["event"] == "terminated":
            del self._running_at[run_id]
        try:
            self._waiting.put_nowait((event["query"], self._event(state, event)))
        except ValueError as error:  # a run's id of another program, which is no UUID
            self._lose(event["query"], str(error))
        except Full:
            self._lose(event["query"], f"{MOST_WAITING:,} others wait for its server")

    def close(self) -> None:
        """Sends the waiting events, for at most CLOSE_SECONDS."""
        sent = self._waiting.all_tasks_done
        with sent:
            is_sent = sent.wait_for(lambda: not self._waiting.unfinished_tasks, CLOSE_SECONDS)
        if is_sent:
            self._client.close(CLOSE_SECONDS)

    def _send(self) -> None:
        while True:
            query, event = self._waiting.get()
            try:
                self._client.emit(event)
                self._is_lost = False
            except Exception as error:  # each transport has its own
                self._lose(query, f"{type(error).__name__}: {error}")
            self._waiting.task_done()

    def _lose(self, query: str, why: str) -> None:
        if not self._is_lost:
            self._warn(printable(without_credentials(f"OpenLineage has not taken an event of {query}: {why}")))
        self._is_lost = True

    def _event(self, state: RunState, event: Row) -> RunEvent:
        query = self._queries.get(event["query"])
        facets: dict[str, RunFacet] = {}
        if event.get("error"):
            facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(event["error"], "PYTHON", event["error_detail"])
        job_type = job_type_job.JobTypeJobFacet("STREAMING", "SPARK", "QUERY")
        return RunEvent(
            eventType=state,
            eventTime=utc_text(event["time"]),
            run=Run(event["run_id"], facets),
            job=Job(environ.get("OPENLINEAGE_NAMESPACE", "streamgauge"), event["query"], {"jobType": job_type}),
            inputs=[InputDataset(**self._input(query))] if query else [],
            outputs=[OutputDataset(**output) for output in self._outputs(query)] if query else [],
        )

    def _input(self, query: Query) -> dict[str, Any]:
        return self._topic(query.source.name) if isinstance(query.source, KafkaTopic) else _folder(query.source.folder)

    def _outputs(self, query: Query) -> Iterator[dict[str, Any]]:
        match query.sink:
            case TopicSink(topics=topics):
                yield from (self._topic(topic.name) for topic in topics)
            case Archive() as archive:
                yield _folder(archive.folder(self._settings))
            case UpsertTable() as table:
                yield _folder(table.delta_table(self._settings))
            case table:
                yield {"namespace": "database", "name": table.place}

    def _topic(self, name: str) -> dict[str, Any]:
        broker = self._settings.bootstrap_servers.partition(",")[0]
        columns = self._columns.get(name)
        facets = {"schema": schema_dataset.SchemaDatasetFacet(columns)} if columns else {}
        return {"namespace": f"kafka://{broker}", "name": name, "facets": facets}


def _folder(folder: object) -> dict[str, Any]:
    """A folder in the file system, or in an object store, as OpenLineage names them."""
    parts = urlsplit(str(folder))
    store = f"{parts.scheme}://{parts.netloc}"
    return {"namespace": store, "name": parts.path.lstrip("/")} if parts.netloc else {"namespace": "file", "name": str(folder)}


def _fields(columns: Iterable[pa.Field]) -> list[schema_dataset.SchemaDatasetFacetFields]:
    return [
        schema_dataset.SchemaDatasetFacetFields(
            column.name, _TYPES[column.type.id], fields=_fields(column.type) if pa.types.is_struct(column.type) else []
        )
        for column in columns
    ]
