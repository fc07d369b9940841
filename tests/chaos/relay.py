"""A port that forwards connections to another one until the network is cut."""

import contextlib
import socket
import struct
import threading
from types import TracebackType

from infrastructure.process.ports import free_ports

HOST = "127.0.0.1"
_AT_ONCE = 1 << 16
_RESET_AT_CLOSE = struct.pack("ii", 1, 0)


class Relay:
    """Forwards connections to `port` to `target`, both ports on loopback, between `__enter__` and `__exit__`."""

    def __init__(self, target: int) -> None:
        self.target = target
        (self.port,) = free_ports(1)
        self._listener: socket.socket | None = None
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()

    def __enter__(self) -> "Relay":
        self.mend()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.cut()

    def cut(self) -> None:
        """Resets all connections, and refuses new ones."""
        with self._lock:
            listener, self._listener = self._listener, None
            connections, self._connections = self._connections, set()
        if listener is not None:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
            listener.close()
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
                connection.shutdown(socket.SHUT_RDWR)  # wakes the thread that reads
            connection.close()

    def mend(self) -> None:
        """Accepts connections again."""
        listener = socket.create_server((HOST, self.port), backlog=128)
        with self._lock:
            self._listener = listener
        threading.Thread(target=self._accept, args=[listener], daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:  # it was cut
                return
            try:
                server = socket.create_connection((HOST, self.target))
                for end in (client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError:  # what it forwards to is down
                client.close()
                continue
            with self._lock:
                if self._listener is not listener:
                    client.close()
                    server.close()
                    return
                self._connections |= {client, server}
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self._forward, args=[one, other], daemon=True).start()

    def _forward(self, reads: socket.socket, writes: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := reads.recv(_AT_ONCE):
                writes.sendall(data)
        with self._lock:
            self._connections -= {reads, writes}
        for end in (reads, writes):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
