"""The command metrics."""

from typing import Annotated

import typer

from contract.settings import Settings
from contract.terminal import out, warn

PORT = 9464


def metrics(
    port: Annotated[int, typer.Option(min=1, max=65_535, help="the port to serve at")] = PORT,
    host: Annotated[str, typer.Option(help="the address to serve at; others than loopback need a network that is closed")] = "127.0.0.1",
) -> None:
    """Serve figures for Prometheus at /metrics. It follows Kafka until it is stopped, and also serves while Kafka is away."""
    from prometheus_client import start_http_server

    from contract.process.stop_signals import stop_requested
    from streamgauge.metrics.exporter import Exporter
    from streamgauge.platform.listening import refuse_a_taken_port

    refuse_a_taken_port(host, port, "choose another one with --port")
    exporter, stop = Exporter(Settings.from_environment().kafka, warn), stop_requested()
    server, thread = start_http_server(port, host, exporter.registry)
    out.print(f"figures for Prometheus are at http://{host}:{port}/metrics; Ctrl-C ends it")
    try:
        exporter.follow(stop)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
