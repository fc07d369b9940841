"""Plain HTTP requests to a schema registry, for what Confluent's client does not support."""

from typing import Any

import requests
from requests.adapters import HTTPAdapter
from requests.auth import HTTPBasicAuth

from contract.registry.server import RegistryServer
from contract.security.tls import Tls


def registry_session(server: RegistryServer) -> requests.Session:
    """A session with `server`."""
    session = requests.Session()
    if server.user_info:
        name, _, password = server.user_info.partition(":")
        session.auth = HTTPBasicAuth(name.encode(), password.encode())
    if server.tls.trusted is not None:
        session.verify = server.tls.truststore
    session.mount("https://", _TlsAdapter(server.tls))
    return session


class _TlsAdapter(HTTPAdapter):
    """Supports keys with a password, which requests alone does not."""

    def __init__(self, tls: Tls) -> None:
        self._tls = tls
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **more: Any) -> None:  # noqa: ANN401 - as the adapter's own
        super().init_poolmanager(*arguments, ssl_context=self._tls.context(), **more)
