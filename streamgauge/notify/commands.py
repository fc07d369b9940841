"""The command notify."""

from pathlib import Path
from typing import Annotated

import typer

from infrastructure.errors import StreamgaugeError
from infrastructure.output.terminal import out, warn
from infrastructure.settings import Settings


def notify(
    template: Annotated[
        Path | None, typer.Option(help="A file with the body of an alert, in which $text and others stand for its fields.")
    ] = None,
    mail_to: Annotated[
        list[str] | None, typer.Option(metavar="ADDRESS", help="Also send alerts by mail; can be repeated.", show_default=False)
    ] = None,
    mail_from: Annotated[str, typer.Option(metavar="ADDRESS", help="The sender of mail.")] = "streamgauge@localhost",
    mail_server: Annotated[str, typer.Option(metavar="HOST:PORT", help="The SMTP server. Port 465 uses implicit TLS.")] = "localhost:25",
    mail_user: Annotated[
        str | None, typer.Option(metavar="NAME", help="The user name for the mail server, which must then offer TLS.", show_default=False)
    ] = None,
    mail_password_file: Annotated[Path | None, typer.Option(help="A file with the password of --mail-user.", show_default=False)] = None,
) -> None:
    """Send alerts on offline cameras, alarms and crowds to ALERT_WEBHOOK_URL, and one when each is over. It runs until it is stopped."""
    from infrastructure.process.locks import alone
    from infrastructure.process.stop_signals import stop_requested
    from infrastructure.web.webhook import JSON, Webhook
    from streamgauge.notify.mail import Login, Mail
    from streamgauge.notify.notifier import Notifier
    from streamgauge.notify.template import form_of

    settings = Settings.from_environment()
    if not (settings.alert_webhook_url or mail_to):
        msg = "ALERT_WEBHOOK_URL is not set; set it to the address that alerts are to be sent to, or name one of mail with --mail-to"
        raise StreamgaugeError(msg)
    if template and not settings.alert_webhook_url:
        msg = "--template is the form of what goes to ALERT_WEBHOOK_URL, which is not set; set it, or leave --template out"
        raise StreamgaugeError(msg)
    if (mail_user is None) != (mail_password_file is None):
        msg = "--mail-user and --mail-password-file go together; name both, or neither"
        raise StreamgaugeError(msg)
    login = Login.of(mail_user, mail_password_file) if mail_user and mail_password_file else None
    webhooks = [Webhook(settings.alert_webhook_url, warn, form_of(template) if template else JSON)] if settings.alert_webhook_url else []
    mails = [Mail(mail_server, mail_from, address, warn, login) for address in dict.fromkeys(mail_to or ())]
    # Each would write what it has sent over what the other has.
    refusal = (
        f"another notify is running ({settings.home}); stop it and name all addresses in one command, or choose another STREAMGAUGE_HOME"
    )
    with alone(settings.home / "notify.lock", refusal):
        notifier, stop = Notifier(settings, [*webhooks, *mails], warn), stop_requested()
        out.print("sends alerts on offline cameras, alarms and crowds; Ctrl-C ends it")
        notifier.follow(stop)
