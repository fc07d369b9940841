"""A small real SOCKS 5 proxy on loopback, which leads every address to one server."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import StreamRequestHandler, ThreadingTCPServer

CONNECT, OF_A_NAME, NO_LOGIN = 1, 3, b"\x05\x00"


class SocksServer(ThreadingTCPServer):
    """asked: the hosts, by name or address, that clients wanted to reach so far."""

    daemon_threads = True

    def __init__(self, target_port: int):
        super().__init__(("127.0.0.1", 0), _Connection)
        self.target_port, self.asked = target_port, []

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class _Connection(StreamRequestHandler):
    server: SocksServer

    def handle(self):
        _, methods = self.rfile.read(2)
        self.rfile.read(methods)
        self.wfile.write(NO_LOGIN)
        _, command, _, kind = self.rfile.read(4)
        assert command == CONNECT
        host = self.rfile.read(self.rfile.read(1)[0]).decode() if kind == OF_A_NAME else socket.inet_ntoa(self.rfile.read(4))
        self.rfile.read(2)
        self.server.asked.append(host)
        with socket.create_connection(("127.0.0.1", self.server.target_port)) as target:
            self.wfile.write(struct.pack(">BBBB4sH", 5, 0, 0, 1, b"\x7f\x00\x00\x01", self.server.target_port))
            back = threading.Thread(target=_copy, args=(target, self.connection), daemon=True)
            back.start()
            _copy(self.connection, target)
            back.join()


def _copy(one: socket.socket, other: socket.socket) -> None:
    while data := one.recv(65536):
        other.sendall(data)
    other.shutdown(socket.SHUT_WR)


@contextmanager
def serving(target_port: int) -> Iterator[SocksServer]:
    with SocksServer(target_port) as server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield server
        server.shutdown()
