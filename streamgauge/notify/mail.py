"""Sends alerts by mail, through a server that takes mail from this machine without a password."""

import re
import smtplib
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from email.message import EmailMessage
from functools import partial
from urllib.parse import urlsplit

from contract.errors import StreamgaugeError
from contract.web.client import reason
from contract.web.outbox import Finished, NotTaken, Outbox

ANSWER_SECONDS = 10
_PERMANENT = 500
"""The first code of answers after which mail is not tried again."""
_ADDRESS = re.compile(r"[^\s<>@,;]+@[^\s<>@,;]+")


class Mail:
    """Sends alerts to the address `to`, as an Outbox does.

    server: HOST:PORT. The connection is encrypted if the server offers that. Raises StreamgaugeError for another form, and for an address that
    is none.
    """

    def __init__(self, server: str, sender: str, to: str, say: Callable[[str], None]) -> None:
        self._server, self._sender, self.name = _host_and_port(server), _address("--mail-from", sender), _address("--mail-to", to)
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
            with smtplib.SMTP(*self._server, timeout=ANSWER_SECONDS) as server:
                server.ehlo_or_helo_if_needed()
                if server.has_extn("starttls"):
                    server.starttls()
                server.send_message(mail)
        except OSError as error:  # smtplib's are, too
            raise _not_taken(error) from error


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
