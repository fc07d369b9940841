"""A small real SMTP server on loopback."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from socketserver import StreamRequestHandler, ThreadingTCPServer


@contextmanager
def mail_server(*refused: str, later: int = 0) -> Iterator[tuple[str, list[EmailMessage]]]:
    """Its address, as HOST:PORT, and the mail that it takes. refused: the recipients for whom it takes none. later: how many it asks to try again."""
    taken: list[EmailMessage] = []
    put_off = iter(range(later))

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            self.answer(220, "ready")
            for line in self.rfile:
                command = line.decode().strip()
                name = command[:4].upper()
                if name == "DATA":
                    self.answer(354, "go on")
                    lines = iter(self.rfile.readline, b".\r\n")
                    taken.append(message_from_bytes(b"".join(lines), policy=policy.default))
                is_refused = name == "RCPT" and any(f"<{one}>" in command for one in refused)
                is_put_off = name == "RCPT" and next(put_off, None) is not None
                self.answer(451 if is_put_off else 550 if is_refused else 221 if name == "QUIT" else 250, "so be it")

        def answer(self, code: int, text: str) -> None:
            self.wfile.write(f"{code} {text}\r\n".encode())

    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}", taken
        server.shutdown()
