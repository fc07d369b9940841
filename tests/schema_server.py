"""A schema registry without Java: it answers for schemas by id, and nothing else."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

from web_server import Quiet, answering


@contextmanager
def schemas_served(schemas: Mapping[int, str]) -> Iterator[tuple[str, list[str]]]:
    """The address of a registry with these schemas, and the paths that it has been asked for."""
    asked: list[str] = []

    class Registry(Quiet, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            text = schemas.get(int(self.path.partition("?")[0].rpartition("/")[2]))
            body = {"schema": text} if text else {"error_code": 40403, "message": "Schema not found"}
            self.send_response(200 if text else 404)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

    with answering(Registry) as address:
        yield address, asked
