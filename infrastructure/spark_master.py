"""Parses SPARK_MASTER: local or cluster mode, the addresses of Standalone masters, and this machine's address towards them."""

import os
import socket
import sys
from pathlib import Path

from infrastructure.errors import StreamgaugeError

SCHEME = "spark://"
LOOPBACK = "127.0.0.1"
ANSWER_SECONDS = 3


def is_local(master: str) -> bool:
    """Whether Spark runs only in processes on this machine that it starts itself: local, local[4], local-cluster[2,1,1024]."""
    return master.startswith("local")


def is_managed(master: str) -> bool:
    """Whether Kubernetes or YARN provides the executors, configured by Spark's own settings."""
    return master.startswith("k8s://") or master == "yarn"


def path_with_own_python() -> str:
    """PATH, with the folder of this interpreter first: Spark's processes start Python as `python3`, and need its packages and version."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])


def endpoints(master: str) -> list[tuple[str, int]]:
    """Host and port of each master in `master`, one or more: spark://one:7077,two:7077.

    Raises StreamgaugeError when it names none.
    """
    addresses = []
    for text in master.removeprefix(SCHEME).split(","):
        host, _, port = text.rpartition(":")
        if not master.startswith(SCHEME) or not host or not port.isdecimal():
            msg = f"SPARK_MASTER={master} is not a master; expected local[*], local[4], spark://host:7077, k8s://https://host or yarn"
            raise StreamgaugeError(msg)
        addresses.append((host.strip("[]"), int(port)))
    return addresses


def address_towards(master: str) -> str:
    """The local address on the route to the first master that answers. Processes there reach this machine by it.

    Raises StreamgaugeError when no master answers.
    """
    problems = []
    for host, port in endpoints(master):
        try:
            with socket.create_connection((host, port), ANSWER_SECONDS) as connection:
                return str(connection.getsockname()[0])
        except (OSError, ValueError) as error:  # ValueError: of a host that cannot be one
            problems.append(f"{host}:{port}: {getattr(error, 'strerror', None) or error}")
    msg = f"no Spark master answers at {master} ({'; '.join(problems)}); start one, such as with `streamgauge spark-master`, or correct SPARK_MASTER"
    raise StreamgaugeError(msg)
