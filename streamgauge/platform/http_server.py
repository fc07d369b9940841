"""A small HTTP server on an address that the user gives: the application answers under its own names only, and ends at Ctrl-C."""

import socket
from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from infrastructure.process.stop_signals import stop_requested

LOOPBACK = ("127.0.0.1", "localhost")
ALL_ADDRESSES = ("0.0.0.0", "::")  # noqa: S104 - compared with


def run(app: Starlette, host: str, port: int) -> None:
    """Serves until Ctrl-C."""
    import uvicorn

    stop_requested()  # uvicorn ends at a signal, and then raises it again
    uvicorn.run(app, host=host, port=port, log_level="warning")


def own_names_only(host: str, *, has_any_name: bool = True) -> Middleware:
    """Refuses requests under other names than those of loopback and `host`.

    No page of another site can then reach the server by a name of its own (DNS rebinding).

    has_any_name: whether a host that means all addresses has every name, which suits a server behind a proxy. Without it, such a host has this
    machine's names, and any address: no site has an address as its name.
    """
    is_open = host in ALL_ADDRESSES
    names = [*LOOPBACK, *(_names_of_this_machine() if is_open else [host.lower()])]

    async def answer(request: Request, call_next: RequestResponseEndpoint) -> Response:
        name = _host_name(request.headers.get("host", ""))
        if name in names or (is_open and (has_any_name or _is_address(name))):
            return await call_next(request)
        more = "; use its address, or start it with --host and that name" if is_open else ""
        return JSONResponse({"error": f"no host {name}; there are {', '.join(dict.fromkeys(names))}{more}"}, 400)

    return Middleware(BaseHTTPMiddleware, dispatch=answer)


def _names_of_this_machine() -> list[str]:
    """The name of this machine, and its name in a network without a name server (mDNS)."""
    name = socket.gethostname().lower()
    return [name, f"{name.partition('.')[0]}.local"]


def _is_address(name: str | None) -> bool:
    try:
        return name is not None and bool(ip_address(name))
    except ValueError:
        return False


def _host_name(header: str) -> str | None:
    """The header without its port. None if it has no name, or cannot be read."""
    with suppress(ValueError):
        return urlsplit(f"//{header}").hostname
    return None
