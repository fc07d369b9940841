"""The command notify."""

from contract.errors import StreamgaugeError
from contract.settings import Settings
from contract.terminal import out, warn


def notify() -> None:
    """Send alerts on offline cameras, alarms and crowds to ALERT_WEBHOOK_URL, and one when each is over. It runs until it is stopped."""
    from contract.process.stop_signals import stop_requested
    from streamgauge.notify.notifier import Notifier

    settings = Settings.from_environment()
    if not settings.alert_webhook_url:
        msg = "ALERT_WEBHOOK_URL is not set; set it to the address that alerts are to be sent to"
        raise StreamgaugeError(msg)
    notifier, stop = Notifier(settings, warn), stop_requested()
    out.print("sends alerts on offline cameras, alarms and crowds; Ctrl-C ends it")
    notifier.follow(stop)
