"""The page of `streamgauge break --page`: a button for each fault, and one that undoes it. For loopback only, without a script."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from html import escape
from threading import Lock

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings
from infrastructure.text import duration
from streamgauge.platform.http_server import own_names_only
from streamgauge.platform.listening import HOST
from streamgauge.system_errors import as_line
from streamgauge.workshop import breaking
from streamgauge.workshop.breaking import Played
from streamgauge.workshop.faults import FAULTS, Fault

_HEADERS = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'"}
_STYLE = """
:root { color-scheme: light dark; font: 16px/1.45 system-ui, sans-serif }
body { max-width: 68rem; margin: 1.5rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem; margin: 0 0 .5rem }
h2 { font-size: 1rem; margin: 0 }
.faults { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(20rem, 100%), 1fr)); gap: .8rem }
article, .state { border: 1px solid #8886; border-radius: .5rem; padding: .8rem 1rem }
.state { margin: 1rem 0 }
.broken { border: 2px solid #c62828 }
article { display: flex; flex-direction: column; gap: .5rem }
article p { margin: 0; flex: 1 }
dl { margin: .6rem 0 } dt { font-weight: 600 } dd { margin: 0 0 .5rem }
button { font: inherit; padding: .45rem 1rem; border: 1px solid #888; border-radius: .4rem; cursor: pointer }
button:disabled { cursor: default; opacity: .5 }
code { overflow-wrap: anywhere }
"""


@dataclass
class FaultPage:
    """The page, and what its buttons do. clock: tells the time, UTC. said: the answer to the last button."""

    settings: Settings
    clock: Callable[[], datetime] = partial(datetime.now, UTC)
    said: str = ""
    _alone: Lock = field(default_factory=Lock)

    def app(self) -> Starlette:
        """The application, to be served on loopback."""
        routes = [
            Route("/", self._show),
            Route("/break/{name}", self._break, methods=["POST"]),
            Route("/undo", self._undo, methods=["POST"]),
        ]
        told = {StreamgaugeError: lambda _, error: PlainTextResponse(str(error), 500)}
        return Starlette(routes=routes, middleware=[own_names_only(HOST, has_any_name=False)], exception_handlers=told)

    def _show(self, _: Request) -> Response:
        return HTMLResponse(page(breaking.played(self.settings), self.said, self.clock()), headers=_HEADERS)

    def _break(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in FAULTS:
            raise HTTPException(404)
        return self._done(request, lambda: breaking.play(name, self.settings), "")

    def _undo(self, request: Request) -> Response:
        return self._done(
            request,
            lambda: breaking.undo(self.settings),
            "It is undone. The Health page shows when all queries run again. Records that were sent to a source topic stay there.",
        )

    def _done(self, request: Request, act: Callable[[], object], done: str) -> Response:
        """Acts, if the page itself asks for it: no page of another site may."""
        if request.headers.get("origin") != f"http://{request.headers.get('host')}":
            raise HTTPException(403, "only the page itself may ask for this")
        with self._alone:
            try:
                act()
            except (StreamgaugeError, OSError) as error:
                self.said = as_line(error) if isinstance(error, OSError) else str(error)
            else:
                self.said = done
        return RedirectResponse("/", 303)


def page(played: Played | None, said: str, now: datetime) -> str:
    """The fault that is played, if there is one, and all that can be. While the system is broken, the page loads itself again every five seconds."""
    faults = "\n".join(_article(name, fault, is_possible=played is None) for name, fault in FAULTS.items())
    refresh = "" if played is None else '<meta http-equiv="refresh" content="5">'
    state = '<p class="state">Nothing is broken.</p>' if played is None else _state(played, now)
    return f"""<!doctype html><html lang="en"><meta charset="utf-8">{refresh}
<meta name="viewport" content="width=device-width"><title>{"Break the demo" if played is None else f"Broken: {played.name}"}</title><style>{_STYLE}</style>
<h1>Break the demo</h1>
<p>Each fault breaks the running demo, and a second button undoes it. Watch the dashboard, <code>streamgauge status</code> and <code>streamgauge verify</code> meanwhile.</p>
<div role="status">{f"<p>{_text(said)}</p>" if said else ""}{state}</div>
<div class="faults">
{faults}
</div></html>
"""


def _state(played: Played, now: datetime) -> str:
    fault = played.fault
    alert = f'an alert with "{fault.alert}"' if fault.alert else "none within a minute"
    told = {"How it shows": fault.signs, "Alert": alert, "How to repair it": fault.repair}
    listed = "".join(f"<dt>{title}</dt><dd>{_text(text)}</dd>" for title, text in told.items())
    return f"""<section class="state broken"><h2>Broken: {played.name}, for {duration(now - played.at)}</h2><p>{_text(fault.cause)}</p><dl>{listed}</dl>
<form method="post" action="/undo"><button>Undo {played.name}</button></form></section>"""


def _article(name: str, fault: Fault, *, is_possible: bool) -> str:
    button = f'<button aria-label="Break: {name}"{"" if is_possible else " disabled"}>Break</button>'
    return f'<article><h2>{name}</h2><p>{_text(fault.cause)}</p><form method="post" action="/break/{name}">{button}</form></article>'


def _text(text: str) -> str:
    """Text in which `code` is marked, as HTML."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts))
