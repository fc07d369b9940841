"""A real SMTP server on loopback."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword

from infrastructure.process.ports import free_ports


@contextmanager
def mail_server(
    *refused: str, later: int = 0, certificate: Path | None = None, login: tuple[str, str] | None = None, bye: str = "221 bye"
) -> Iterator[tuple[str, list[EmailMessage]]]:
    """Its address, as HOST:PORT, and the mail that it takes.

    refused: the recipients for whom it takes none. later: how many it asks to try again. certificate: it offers STARTTLS with that. login: user
    and password without which it takes none. bye: its answer to QUIT.
    """
    taken: list[EmailMessage] = []
    put_off = iter(range(later))

    class Handler:
        async def handle_RCPT(self, _server: object, _session: object, envelope: Any, address: str, _options: object) -> str:  # noqa: N802
            if address in refused:
                return "550 so be it"
            if next(put_off, None) is not None:
                return "451 so be it"
            envelope.rcpt_tos.append(address)
            return "250 so be it"

        async def handle_DATA(self, _server: object, _session: object, envelope: Any) -> str:  # noqa: N802
            taken.append(message_from_bytes(envelope.content, policy=policy.default))
            return "250 so be it"

        async def handle_QUIT(self, *_: object) -> str:  # noqa: N802
            return bye

    def known(_server: object, _session: object, _envelope: object, _mechanism: str, data: Any) -> AuthResult:
        is_known = isinstance(data, LoginPassword) and (data.login.decode(), data.password.decode()) == login
        return AuthResult(success=is_known, handled=False)

    tls = None
    if certificate:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(str(certificate))
    (port,) = free_ports(1)
    controller = Controller(
        Handler(), "127.0.0.1", port, tls_context=tls, authenticator=known, auth_required=login is not None, auth_require_tls=False
    )
    controller.start()
    try:
        yield f"127.0.0.1:{port}", taken
    finally:
        controller.stop()
