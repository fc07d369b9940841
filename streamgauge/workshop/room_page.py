"""The trainer's page: who is at which check of which lab, as the learners' commands tell it (room.py). It is kept in memory only."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from html import escape
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from infrastructure.text import duration
from streamgauge.platform.http_server import own_names_only
from streamgauge.workshop.labs import Lab
from streamgauge.workshop.room import LEARNER_HEADER, MAX_NAME, is_learner, is_name

MAX_LEARNERS = 200
_MAX_BYTES = 2_000
_HEADERS = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
_STYLE = """
:root { color-scheme: light dark; font: 16px system-ui, sans-serif }
table { border-collapse: collapse }
th, td { border-bottom: 1px solid #8886; padding: .35em .7em; text-align: center }
th:first-child, td:first-child { text-align: left }
td.now { background: #f5b94155 }
"""
_Number = Annotated[int, Field(ge=0, le=99)]


class Progress(BaseModel):
    """What a learner's command tells. done: numbers of labs. lab, passed, total: of the lab that was started or checked last, and its checks."""

    done: Annotated[list[_Number], Field(max_length=99)]
    lab: _Number = 0
    passed: _Number = 0
    total: _Number = 0


@dataclass
class Learner:
    """progress: the last that was told, at `heard`. since: when this learner came to this check."""

    name: str
    progress: Progress
    since: datetime
    heard: datetime


@dataclass
class Room:
    """The learners by their ids. Requests come one after the other, in one thread. clock: tells the time, UTC."""

    labs: Sequence[Lab]
    clock: Callable[[], datetime] = partial(datetime.now, UTC)
    learners: dict[str, Learner] = field(default_factory=dict)

    def app(self, host: str) -> Starlette:
        """The application to be served at `host`: the page, and what learners send."""
        routes = [
            Route("/", self._show),
            Route("/learner", self._hear, methods=["PUT"]),
            Route("/learner", self._forget, methods=["DELETE"]),
        ]
        return Starlette(routes=routes, middleware=[own_names_only(host, has_any_name=False)], exception_handlers={HTTPException: _refusal})

    async def _show(self, _: Request) -> Response:
        return HTMLResponse(page(self.learners.values(), self.labs, self.clock()), headers=_HEADERS)

    async def _hear(self, request: Request) -> Response:
        """PUT, which a page of another site cannot send."""
        learner, name, progress, now = _learner(request), _name(request), await _progress(request), self.clock()
        known = self.learners.get(learner)
        if any(other.name == name for other in self.learners.values() if other is not known):
            raise HTTPException(409, f"another learner, or you in another folder, is on the page as {name}; join with another name")
        if known is None and len(self.learners) >= MAX_LEARNERS:
            raise HTTPException(403, f"{MAX_LEARNERS} learners are on the page; a restart of the server forgets them all")
        is_where_it_was = known is not None and (known.progress.lab, known.progress.passed) == (progress.lab, progress.passed)
        self.learners[learner] = Learner(name, progress, known.since if known and is_where_it_was else now, now)
        return Response(status_code=204)

    async def _forget(self, request: Request) -> Response:
        self.learners.pop(_learner(request), None)
        return Response(status_code=204)


def page(learners: Collection[Learner], labs: Sequence[Lab], now: datetime) -> str:
    """A row a learner, a column a lab. It loads itself again every five seconds."""
    heads = "".join(f'<th title="{escape(lab.title)}">{lab.number}</th>' for lab in labs)
    rows = "\n".join(_row(learner, labs, now) for learner in sorted(learners, key=_order))
    empty = "" if learners else "<p>Nobody has joined yet: <code>streamgauge workshop join URL NAME</code></p>"
    return f"""<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="5">
<meta name="viewport" content="width=device-width"><title>Workshop: {len(learners)}</title><style>{_STYLE}</style>
<h1>Workshop</h1>
<table><thead><tr><th>learner</th>{heads}<th>at this check for</th><th>last heard</th></tr></thead><tbody>
{rows}
</tbody></table>{empty}</html>
"""


def _row(learner: Learner, labs: Sequence[Lab], now: datetime) -> str:
    at = learner.progress
    cells = "".join(_cell(lab.number, at) for lab in labs)
    here = "" if at.lab in {0, *at.done} else duration(now - learner.since)
    return f"<tr><td>{escape(learner.name)}</td>{cells}<td>{here}</td><td>{duration(now - learner.heard)} ago</td></tr>"


def _cell(number: int, at: Progress) -> str:
    if number in at.done:
        return "<td>done</td>"
    if number == at.lab:
        return f'<td class="now">{f"{at.passed} of {at.total}" if at.total else "started"}</td>'
    return "<td></td>"


def _order(learner: Learner) -> tuple[bool, int, str]:
    """Numbers in their order, then names."""
    name = learner.name
    is_number = name.isascii() and name.isdecimal()
    return not is_number, int(name) if is_number else 0, name.casefold()


def _learner(request: Request) -> str:
    learner = request.headers.get(LEARNER_HEADER, "")
    if not is_learner(learner):
        raise HTTPException(400, f"expected an id in header {LEARNER_HEADER}")
    return learner


def _name(request: Request) -> str:
    name = request.query_params.get("name", "")
    if not is_name(name):
        raise HTTPException(400, f"expected a name of at most {MAX_NAME} printable characters")
    return name


async def _progress(request: Request) -> Progress:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BYTES:
            raise HTTPException(413, f"expected at most {_MAX_BYTES:,} bytes")
    try:
        return Progress.model_validate_json(body)
    except ValidationError as error:
        raise HTTPException(400, "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())) from None


async def _refusal(_: Request, error: Exception) -> Response:
    return JSONResponse({"error": error.detail}, error.status_code) if isinstance(error, HTTPException) else Response(status_code=500)
