"""Finds free ports for servers that run next to others."""

import random
import socket
from collections.abc import Collection
from contextlib import ExitStack


def free_ports(count: int, but: Collection[int] = ()) -> list[int]:
    """`count` consecutive free ports below the range of outgoing connections, any of which could otherwise take one. None is in `but`."""
    while True:
        first = random.randrange(20_000, 32_000)  # noqa: S311 - no secret
        ports = list(range(first, first + count))
        with ExitStack() as sockets:
            try:
                for port in ports:
                    sockets.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
        if not {*ports} & {*but}:
            return ports
