"""The command notify."""

from pathlib import Path
from typing import Annotated

import typer

from contract.errors import StreamgaugeError
from contract.settings import Settings
from contract.terminal import out, warn


def notify(
    template: Annotated[
        Path | None, typer.Option(help="A file with the body of an alert, in which $text and others stand for its fields.")
    ] = None,
) -> None:
    """Send alerts on offline cameras, alarms and crowds to ALERT_WEBHOOK_URL, and one when each is over. It runs until it is stopped."""
    from contract.process.stop_signals import stop_requested
    from contract.web.webhook import JSON
    from streamgauge.notify.notifier import Notifier
    from streamgauge.notify.template import form_of

    settings = Settings.from_environment()
    if not settings.alert_webhook_url:
        msg = "ALERT_WEBHOOK_URL is not set; set it to the address that alerts are to be sent to"
        raise StreamgaugeError(msg)
    notifier, stop = Notifier(settings, warn, form_of(template) if template else JSON), stop_requested()
    out.print("sends alerts on offline cameras, alarms and crowds; Ctrl-C ends it")
    notifier.follow(stop)
