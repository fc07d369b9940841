"""HDFS by its web interface, as one of fsspec's file systems: Python needs no Hadoop on its machine. Spark has HDFS's own client."""

import os
from functools import partial
from getpass import getuser
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import requests
from fsspec import register_implementation
from fsspec.implementations.webhdfs import WebHDFS

_WEB_PORT = 9870
"""Where a NameNode has its web interface by default."""
_SECONDS = 60


class HdfsUnavailable(RuntimeError):  # noqa: N818
    """The NameNode does not answer. No OSError: fsspec takes that for a file that is not there."""


class Hdfs(WebHDFS):
    """A path is HOST:PORT/folder/file, as Spark's: the NameNode, and where it answers Java's clients."""

    protocol = "hdfs"

    def __init__(self, host: str = "", port: int = 0, endpoint_url: str = "", **options: Any) -> None:  # noqa: ANN401, ARG002 - as WebHDFS; the port is Java's
        """endpoint_url: of the NameNode's web interface; empty: _WEB_PORT of `host`."""
        web = urlsplit(endpoint_url or f"http://{host}:{_WEB_PORT}")
        user = os.environ.get("HADOOP_USER_NAME") or getuser()  # as Java's clients
        super().__init__(host=web.hostname, port=web.port or _WEB_PORT, use_https=web.scheme == "https", user=user, **options)

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(path).removeprefix("hdfs://").rstrip("/")

    def _connect(self) -> None:
        super()._connect()
        self.session.request = partial(self.session.request, timeout=_SECONDS)

    def _call(self, op: str, method: str = "get", path: str | None = None, **options: Any) -> Any:  # noqa: ANN401 - as WebHDFS
        if "destination" in options:
            options["destination"] = _on_server(options["destination"])
        try:
            return super()._call(op, method, None if path is None else _on_server(path), **options)
        except requests.RequestException as error:
            msg = f"{self.url} does not answer ({type(error).__name__})"
            raise HdfsUnavailable(msg) from error

    def exists(self, path: str, **_options: object) -> bool:
        """As of fsspec, where no answer means no."""
        try:
            self.info(path)
        except FileNotFoundError:
            return False
        return True

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_options: object) -> None:
        """Writes a file atomically. Raises FileExistsError if it exists and mode is "create"."""
        folder, _, name = self._strip_protocol(path).rpartition("/")
        partial_file = f"{folder}/.{name}.{uuid4().hex[:8]}.partial"
        with self.open(partial_file, "wb") as file:
            file.write(value)
        how: dict[str, str] = {} if mode == "create" else {"renameoptions": "OVERWRITE"}
        answer = self._call("RENAME", "put", partial_file, destination=f"{folder}/{name}", **how)
        if mode == "create" and not answer.json()["boolean"]:
            self.rm_file(partial_file)
            raise FileExistsError(path)


def _on_server(path: str) -> str:
    return f"/{path.removeprefix('hdfs://').partition('/')[2]}"


register_implementation(Hdfs.protocol, Hdfs, clobber=True)
