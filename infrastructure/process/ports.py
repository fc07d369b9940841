"""Finds free ports for servers that run next to others."""

import random
import socket
from contextlib import ExitStack


def free_ports(count: int) -> list[int]:
    """`count` consecutive free ports below the range of outgoing connections, any of which could otherwise take one."""
    while True:
        first = random.randrange(20_000, 32_000)  # noqa: S311 - no secret
        with ExitStack() as sockets:
            try:
                for port in range(first, first + count):
                    sockets.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
        return list(range(first, first + count))
