"""Sends alerts by mail, through a server that takes mail from this machine without a password."""

import smtplib
from collections.abc import Callable, Mapping, Sequence
from email.message import EmailMessage

from contract.errors import StreamgaugeError

ANSWER_SECONDS = 10


class Mail:
    """Sends alerts to the addresses `to`. The caller waits for the server; `say` gets a line for each alert that it does not take.

    server: HOST:PORT. The connection is encrypted if the server offers that. Raises StreamgaugeError for another form.
    """

    def __init__(self, server: str, sender: str, to: Sequence[str], say: Callable[[str], None]) -> None:
        host, _, port = server.rpartition(":")
        if not (host and port.isdecimal()):
            msg = f"--mail-server is {server!r}; expected HOST:PORT, such as localhost:25"
            raise StreamgaugeError(msg)
        self._server, self._address, self._sender, self._to, self._say = server, (host, int(port)), sender, to, say

    def send(self, alert: Mapping[str, str]) -> None:
        """Sends one alert, a contract.topics.Alert."""
        mail = EmailMessage()
        mail["Subject"] = " ".join(f"{alert['level']}: {alert['what']}".split())
        mail["From"], mail["To"] = self._sender, ", ".join(self._to)
        mail.set_content("".join(f"{name}: {value}\n" for name, value in alert.items() if value))
        try:
            with smtplib.SMTP(*self._address, timeout=ANSWER_SECONDS) as server:
                server.ehlo_or_helo_if_needed()
                if server.has_extn("starttls"):
                    server.starttls()
                refused = server.send_message(mail)
        except (OSError, smtplib.SMTPException) as error:
            self._say(f"an alert did not reach the mail server {self._server}: {error}")
        else:
            if refused:
                self._say(f"the mail server {self._server} did not take an alert for {', '.join(refused)}")
