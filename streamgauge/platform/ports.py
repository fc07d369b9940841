"""Ports for servers that are started beside whatever runs already."""

import random
import socket
from contextlib import ExitStack


def free_ports(count: int) -> list[int]:
    """`count` neighbouring ports that nobody listens on, below those that systems give to outgoing connections: one of them could take it meanwhile."""
    while True:
        first = random.randrange(20_000, 32_000)  # noqa: S311 - no secret
        with ExitStack() as sockets:
            try:
                for port in range(first, first + count):
                    sockets.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
        return list(range(first, first + count))
