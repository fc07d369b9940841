"""The commands demo, down and dashboard."""

import os
import sys
from typing import Annotated

import typer

from infrastructure.errors import StreamgaugeError, check_names
from infrastructure.output.terminal import err, out
from infrastructure.settings import Settings


def demo(
    with_dashboard: Annotated[bool, typer.Option("--dashboard/--no-dashboard", help="start the dashboard, or not")] = True,  # noqa: FBT002 - an option
    without_audit: Annotated[bool, typer.Option("--no-audit", help="do not start the continuous audit")] = False,  # noqa: FBT002 - an option
    only: Annotated[list[str] | None, typer.Option(metavar="DOMAIN", help="send events of this domain only; can be repeated")] = None,
    rate: Annotated[
        float | None, typer.Option(min=0.001, metavar="EVENTS", help="events per second of each domain; live edits keep their own rate")
    ] = None,
    seconds: Annotated[float | None, typer.Option("--for", metavar="SECONDS", help="stop after this many seconds")] = None,
    detach: Annotated[bool, typer.Option("--detach", help="run in the background once everything has started")] = False,  # noqa: FBT002
    opens_page: Annotated[bool, typer.Option("--open", help="open the dashboard in a browser")] = False,  # noqa: FBT002 - an option
    break_page: Annotated[bool, typer.Option("--break-page", help="also serve the page of `streamgauge break --page`")] = False,  # noqa: FBT002
) -> None:
    """Run everything in the foreground. This starts Kafka, the producers, the pipeline, the audit and the dashboard. Ctrl-C or `streamgauge down` stops it; the next start continues."""
    from contract.domains import DOMAINS, NAMES
    from streamgauge.demo import background
    from streamgauge.demo.demo import Demo
    from streamgauge.demo.live import LiveFigures
    from streamgauge.demo.ports import on_free_ports
    from streamgauge.demo.services import COMMAND, children

    check_names("domain", only or [], NAMES)
    if opens_page and not with_dashboard:
        msg = "--open shows the dashboard; leave out --no-dashboard"
        raise StreamgaugeError(msg)
    settings = Settings.from_environment()
    if detach:
        arguments = (word for word in sys.argv[1:] if word != "--detach")
        raise typer.Exit(background.start([*COMMAND, *arguments], settings, err.print))
    settings = on_free_ports(settings, err.print, dashboard=with_dashboard)
    domains = [domain for domain in DOMAINS if not only or domain.name in only]
    figures = LiveFigures(settings)
    parts = children(settings, figures, domains, dashboard=with_dashboard, audit=not without_audit, break_page=break_page, rate=rate)
    Demo(settings, err, parts, figures, domains, opens_page=opens_page).run(seconds)


def down() -> None:
    """Stop the demo, and the embedded Kafka and schema registry. Their data stays."""
    from streamgauge.demo import background
    from streamgauge.platform.platform import Platform

    settings = Settings.from_environment()
    if background.stop(settings):
        out.print("the demo is stopped")
    for line in Platform(settings).stop():
        out.print(line)


def dashboard() -> None:
    """Serve the dashboard. It listens on STREAMGAUGE_DASHBOARD_HOST, by default on loopback."""
    from dashboard.server import dashboard_command

    command = dashboard_command(Settings.from_environment())
    os.execv(command[0], command)  # noqa: S606 - Streamlit takes this process over, and with it the signals
