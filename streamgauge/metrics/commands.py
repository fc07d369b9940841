"""The commands metrics, lineage and traces."""

from typing import Annotated

import typer

from infrastructure.errors import StreamgaugeError
from infrastructure.output.terminal import out, warn
from infrastructure.settings import Settings

PORT = 9464


def metrics(
    port: Annotated[int, typer.Option(min=1, max=65_535, help="the port to serve at")] = PORT,
    host: Annotated[
        str, typer.Option(help="the address to serve at; there is no authentication: use loopback, or a closed network")
    ] = "127.0.0.1",
) -> None:
    """Serve figures for Prometheus at /metrics. It runs until it is stopped, also while Kafka cannot be reached."""
    from prometheus_client import start_http_server

    from infrastructure.process.stop_signals import stop_requested
    from streamgauge.metrics.exporter import Exporter
    from streamgauge.platform.listening import url_of

    url = url_of(host, port)
    exporter, stop = Exporter(Settings.from_environment().kafka, warn), stop_requested()
    server, thread = start_http_server(port, host, exporter.registry)
    out.print(f"figures for Prometheus are at {url}/metrics; Ctrl-C ends it")
    try:
        exporter.follow(stop)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def lineage() -> None:
    """Send the runs of queries to OpenLineage: what each reads and writes, and how it ends. OpenLineage's own variables configure the command. It runs until it is stopped."""
    from infrastructure.process.stop_signals import stop_requested
    from streamgauge.metrics.events import follow_events

    try:
        from streamgauge.metrics.lineage import Lineage
    except ModuleNotFoundError as error:
        raise _missing(error, extra="lineage") from error
    settings, stop = Settings.from_environment(), stop_requested()
    exporter = Lineage(settings, warn)
    out.print("sends the runs of queries to OpenLineage; Ctrl-C ends it")
    follow_events(settings.kafka, exporter.tell, stop, warn)
    exporter.close()


def traces() -> None:
    """Send each batch as a span, by OTLP over HTTP. OpenTelemetry's own variables configure the command. It runs until it is stopped."""
    from infrastructure.process.stop_signals import stop_requested
    from streamgauge.metrics.events import follow_events

    try:
        from streamgauge.metrics.traces import Traces
    except ModuleNotFoundError as error:
        raise _missing(error, extra="otlp") from error
    settings, stop, exporter = Settings.from_environment(), stop_requested(), Traces()
    out.print("sends batches as spans by OTLP; Ctrl-C ends it")
    follow_events(settings.kafka, exporter.tell, stop, warn)
    exporter.close()


def _missing(error: ModuleNotFoundError, *, extra: str) -> StreamgaugeError:
    return StreamgaugeError(
        f"the Python package {error.name} is missing: in the clone, `make setup` or `pip install '.[{extra}]'` installs it"
    )
