"""Small real HTTP servers on loopback, which misbehave as a test has them do."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Quiet(BaseHTTPRequestHandler):
    """Prints no line for each request."""

    def log_message(self, *_):
        pass


class _Files(Quiet, SimpleHTTPRequestHandler):
    pass


@contextmanager
def serving(server: ThreadingHTTPServer) -> Iterator[str]:
    """Its address, while it answers."""
    with server:
        # An end is noticed at the next poll; the default is half a second.
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def answering(handler: type[BaseHTTPRequestHandler]):
    """The address of a server that answers by `handler`, while it does."""
    return serving(ThreadingHTTPServer(("127.0.0.1", 0), handler))


def files(folder: Path):
    """The address of a server of the files in `folder`, while it answers."""
    return serving(ThreadingHTTPServer(("127.0.0.1", 0), partial(_Files, directory=str(folder))))


@contextmanager
def webhook(*answers, when=None):
    """The webhook of alerts: a server that answers with `answers` in turn, then always with the last, but not before `when`; gives its address and what it was sent."""
    taken, left = [], list(answers)

    class Handler(Quiet, BaseHTTPRequestHandler):
        def do_POST(self):
            taken.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            if when is not None:
                when.wait()
            self.send_response(left.pop(0) if len(left) > 1 else left[0])
            self.end_headers()

    with answering(Handler) as address:
        yield f"{address}/services/T0P-SECRET", taken
