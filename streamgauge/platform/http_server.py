"""A small HTTP server on an address that the user gives: the application answers under its own names only, and ends at Ctrl-C."""

from contextlib import suppress
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from contract.process.stop_signals import stop_requested

LOOPBACK = ("127.0.0.1", "localhost")
ALL_ADDRESSES = ("0.0.0.0", "::")  # noqa: S104 - compared with


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
