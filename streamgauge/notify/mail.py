"""Sends alerts by mail."""

import re
import smtplib
import ssl
from collections.abc import Callable, Mapping
from contextlib import closing, nullcontext, suppress
from email.message import EmailMessage
from functools import partial
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import urlsplit

import httpx2

from infrastructure.errors import StreamgaugeError
from infrastructure.web.client import reason
from infrastructure.web.outbox import Finished, NotTaken, Outbox

ANSWER_SECONDS = 10
IMPLICIT_TLS_PORT = 465
"""RFC 8314."""
_PERMANENT = 500
"""The first code of answers after which mail is not tried again."""
_ADDRESS = re.compile(r"[^\s<>@,;]+@[^\s<>@,;]+")


class Login(NamedTuple):
    """The user and password of a mail server."""

    user: str
    password: str

    @classmethod
    def of(cls, user: str, file: Path) -> Self:
        """The password is the content of `file`, without the end of its line. Raises StreamgaugeError if there is none."""
        try:
            password = file.read_bytes().rstrip(b"\r\n")
        except OSError as error:
            msg = f"--mail-password-file {file} cannot be read ({error.strerror}); expected a file with the password"
            raise StreamgaugeError(msg) from error
        if not password:
            msg = f"--mail-password-file {file} is empty; expected a file with the password"
            raise StreamgaugeError(msg)
        if not (password.isascii() and user.isascii()):
            msg = f"--mail-password-file {file} or --mail-user has a character outside ASCII; expected ASCII only, as Python's SMTP client sends no other"
            raise StreamgaugeError(msg)
        return cls(user, password.decode())


class Mail:
    """Sends alerts to the address `to`, as an Outbox does.

    server: HOST:PORT. The connection is encrypted if the server offers that; with a login, it must be, by a certificate that this machine trusts.
    Raises StreamgaugeError for another form, and for an address that is none.
    """

    def __init__(self, server: str, sender: str, to: str, say: Callable[[str], None], login: Login | None = None) -> None:
        self._server, self._sender, self.name = _host_and_port(server), _address("--mail-from", sender), _address("--mail-to", to)
        self._login = login
        self._outbox = Outbox(f"{to} through the mail server {server}", say, nullcontext())

    def send(self, alert: Mapping[str, str], finished: Finished) -> None:
        """Sends one alert, a contract.topics.Alert."""
        mail = EmailMessage()
        mail["Subject"] = " ".join(f"{alert['level']}: {alert['what']}".split())
        mail["From"], mail["To"] = self._sender, self.name
        mail.set_content("".join(f"{name}: {value}\n" for name, value in alert.items() if value))
        self._outbox.put(str(mail["Subject"]), partial(self._hand_over, mail), finished)

    def close(self) -> None:
        """Sends the pending alerts, for at most outbox.LAST_ALERTS_SECONDS."""
        self._outbox.close()

    def _hand_over(self, mail: EmailMessage) -> None:
        try:
            trusted = httpx2.create_ssl_context() if self._login else None
            with closing(self._connection(trusted)) as server:
                server.ehlo_or_helo_if_needed()
                if server.has_extn("starttls"):
                    server.starttls(context=trusted)
                if self._login:
                    _check_encrypted(server)
                    server.login(*self._login)
                server.send_message(mail)
                with suppress(OSError):  # the server has taken the mail, whatever happens now
                    server.quit()
        except OSError as error:  # smtplib's are, too
            raise _not_taken(error) from error

    def _connection(self, trusted: ssl.SSLContext | None) -> smtplib.SMTP:
        if self._server[1] == IMPLICIT_TLS_PORT:
            return smtplib.SMTP_SSL(*self._server, timeout=ANSWER_SECONDS, context=trusted)
        return smtplib.SMTP(*self._server, timeout=ANSWER_SECONDS)


def _check_encrypted(server: smtplib.SMTP) -> None:
    if not isinstance(server.sock, ssl.SSLSocket):
        msg = "it offers no encryption, and the password is not sent without"
        raise smtplib.SMTPNotSupportedError(msg)


def _not_taken(error: OSError) -> NotTaken:
    answer: bytes | str
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        ((code, answer),) = error.recipients.values()
    elif isinstance(error, smtplib.SMTPResponseException):
        code, answer = error.smtp_code, error.smtp_error
    else:
        return NotTaken(reason(error), may_pass=not isinstance(error, smtplib.SMTPNotSupportedError))
    return NotTaken(f"{code} {answer.decode(errors='replace') if isinstance(answer, bytes) else answer}", may_pass=code < _PERMANENT)


def _host_and_port(server: str) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{server}")
        host, port = parts.hostname, parts.port
        if host and port and parts.netloc == server and "@" not in server:
            host.encode("idna")
            return host, port
    except ValueError:  # also of a host that cannot be one
        pass
    msg = f"--mail-server is {server!r}; expected HOST:PORT, such as localhost:25 or [::1]:25"
    raise StreamgaugeError(msg)


def _address(option: str, text: str) -> str:
    if not (_ADDRESS.fullmatch(text) and text.isprintable()):
        msg = f"{option} is {text!r}; expected one address, such as ops@example.com"
        raise StreamgaugeError(msg)
    return text
