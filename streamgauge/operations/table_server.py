"""Result tables over HTTP, as their topics have them now, for programs that do not speak Kafka."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock

import orjson
import pyarrow as pa
import pyarrow.compute as pc
from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from contract.topic_values import value_decoder
from contract.topics import Topic
from infrastructure.errors import StreamgaugeError, check_names
from infrastructure.kafka.follower import Follower, Snapshot, per_snapshot
from infrastructure.kafka.result_table import left_out
from infrastructure.output.terminal import warn
from infrastructure.process.waiting import waiting
from infrastructure.rows import Fields, Row, decoder
from infrastructure.settings import Settings
from streamgauge.columns import schema_of
from streamgauge.operations.export import TABLES
from streamgauge.platform.http_server import own_names_only

ARROW, ARROW_TYPE = ".arrow", "application/vnd.apache.arrow.stream"
FIRST_READ_SECONDS = 30
"""How long a request waits for a table that nobody has asked for before."""


class Tables:
    """Follows each table from the first request for it."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._lock = settings, Lock()
        self._followers: dict[str, Follower] = {}

    def snapshot(self, topic: Topic) -> Snapshot:
        """The whole table as it is now. Raises HTTPException while it cannot be read."""
        follower = self._follower(topic)
        for seconds in waiting(lambda: f"the first read of topic {topic.name}", warn):
            if (snapshot := follower.snapshot).is_read or snapshot.error or seconds > FIRST_READ_SECONDS:
                break
        if snapshot.error is not None:
            raise HTTPException(503, snapshot.error)
        if not snapshot.is_read:
            raise HTTPException(503, f"topic {topic.name} is being read for the first time; try again")
        return snapshot

    def stop(self) -> None:
        """Stops following all tables."""
        for follower in self._followers.values():
            follower.stop()

    def _follower(self, topic: Topic) -> Follower:
        with self._lock:
            if topic.name not in self._followers:
                decode = decoder(topic.row, value_decoder(topic, self._settings.registry))
                self._followers[topic.name] = Follower(self._settings.kafka, topic.name, decode)
            return self._followers[topic.name]


@contextmanager
def table_app(settings: Settings, host: str) -> Iterator[Starlette]:
    """The application to be served at `host`. It reads Kafka until the end of the block."""
    tables = Tables(settings)

    def table(request: Request) -> Response:
        path = request.path_params["name"]
        topic = _topic(path.removesuffix(ARROW))
        wanted = _wanted(topic.row, request.query_params)
        snapshot = tables.snapshot(topic)
        rows = _only(_as_arrow(snapshot, topic.row), wanted)
        metadata = {"table": topic.plain_name, "left_out": len(snapshot.unreadable), "warning": left_out(topic.name, snapshot.unreadable)}
        return _in_arrow(rows, metadata) if path.endswith(ARROW) else _in_json({**metadata, "rows": rows.to_pylist()})

    routes = [Route("/tables", lambda _: _in_json(_list())), Route("/tables/{name}", table)]
    try:
        yield Starlette(routes=routes, middleware=[own_names_only(host)], exception_handlers={HTTPException: _refusal})
    finally:
        tables.stop()


def _list() -> Row:
    return {"tables": [{"table": name, "columns": _columns(topic.row).names} for name, topic in TABLES.items()]}


def _topic(name: str) -> Topic:
    try:
        check_names("table", [name], TABLES)
    except StreamgaugeError as error:
        raise HTTPException(404, str(error)) from None
    return TABLES[name]


def _columns(fields: type[Fields]) -> pa.Schema:
    """The columns by which rows can be asked for: those of a window are window.start and window.end."""
    return schema_of(fields).empty_table().flatten().schema


def _wanted(fields: type[Fields], asked: QueryParams) -> Mapping[str, pa.Array]:
    """The requested values, by column. Raises HTTPException for an unknown column, and for a value of another type."""
    columns = _columns(fields)
    try:
        check_names("column", asked.keys(), columns.names)
        return {name: _values(name, asked.getlist(name), columns.field(name).type) for name in asked}
    except StreamgaugeError as error:
        raise HTTPException(400, str(error)) from None


def _values(column: str, texts: list[str], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(texts).cast(kind)
    except pa.ArrowInvalid:
        msg = f"{column}: expected {kind}, found {', '.join(texts)}"
        raise StreamgaugeError(msg) from None


@per_snapshot
def _as_arrow(snapshot: Snapshot, fields: type[Fields]) -> pa.Table:
    return pa.Table.from_pylist(snapshot.rows, schema=schema_of(fields))


def _only(table: pa.Table, wanted: Mapping[str, pa.Array]) -> pa.Table:
    """The rows that have one of the values in each column of `wanted`."""
    flat = table.flatten()
    for column, values in wanted.items():
        is_wanted = pc.is_in(flat[column], value_set=values)
        flat, table = flat.filter(is_wanted), table.filter(is_wanted)
    return table


def _in_json(answer: Row, status: int = 200) -> Response:
    return Response(orjson.dumps(answer, option=orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE), status, media_type="application/json")


def _in_arrow(table: pa.Table, metadata: Row) -> Response:
    """metadata: is added to the schema's metadata, as text."""
    stream = pa.BufferOutputStream()
    table = table.replace_schema_metadata({name: str(value) for name, value in metadata.items() if value is not None})
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    return Response(stream.getvalue().to_pybytes(), media_type=ARROW_TYPE)


def _refusal(_: Request, error: Exception) -> Response:
    return _in_json({"error": error.detail}, error.status_code) if isinstance(error, HTTPException) else Response(status_code=500)
