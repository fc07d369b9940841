"""A small HTTP server on an address that the user gives: the application answers under its own names only, and ends at Ctrl-C."""

from contextlib import suppress
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from contract.errors import StreamgaugeError
from contract.process.stop_signals import stop_requested
from streamgauge.platform.listening import refuse_a_taken_port

LOOPBACK = ("127.0.0.1", "localhost")
ALL_ADDRESSES = ("0.0.0.0", "::")  # noqa: S104 - compared with


def url_of(host: str, port: int) -> str:
    """The URL of a server there. Raises StreamgaugeError for a host that is no name or address, and for a port that is taken."""
    if not host.strip() or "*" in host:
        msg = f"--host: expected an address or a name, found {host!r}; for all addresses, give 0.0.0.0"
        raise StreamgaugeError(msg)
    refuse_a_taken_port(host, port, "choose another one with --port")
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run(app: Starlette, host: str, port: int) -> None:
    """Serves until Ctrl-C."""
    import uvicorn

    stop_requested()  # uvicorn ends at a signal, and then raises it again
    uvicorn.run(app, host=host, port=port, log_level="warning")


def own_names_only(host: str) -> Middleware:
    """Refuses requests under other names than those of loopback and `host`, unless that means all addresses.

    No page of another site can then reach the server by a name of its own (DNS rebinding).
    """

    async def answer(request: Request, inside: RequestResponseEndpoint) -> Response:
        name = _host_name(request.headers.get("host", ""))
        if host in ALL_ADDRESSES or name in {*LOOPBACK, host.lower()}:
            return await inside(request)
        return JSONResponse({"error": f"no host {name}; there are {', '.join(dict.fromkeys([*LOOPBACK, host]))}"}, 400)

    return Middleware(BaseHTTPMiddleware, dispatch=answer)


def _host_name(header: str) -> str | None:
    """The header without its port. None if it has no name, or cannot be read."""
    with suppress(ValueError):
        return urlsplit(f"//{header}").hostname
    return None
