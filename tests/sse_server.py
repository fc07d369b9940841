"""A small real server of server-sent events, which misbehaves as it is told to."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Behaviour = Callable[["Answer"], None]
CRLF, LF = "\r\n", "\n"


class Answer(BaseHTTPRequestHandler):
    """One connection; what becomes of it is the next behaviour of the script, or the last one again."""

    server: "SseServer"

    def do_GET(self):
        with self.server.lock:
            self.server.requests.append(self.headers)
            number = min(len(self.server.requests), len(self.server.script)) - 1
        self.server.script[number](self)

    def log_message(self, *_):
        pass

    @property
    def first(self) -> int:
        """The number of the first event that the client does not have."""
        return int(self.headers.get("Last-Event-ID", "-1")) + 1

    def open(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.end_headers()

    def write(self, text: str | bytes):
        self.wfile.write(text.encode() if isinstance(text, str) else text)
        self.wfile.flush()

    def events(self, first: int, count: int):
        for number in range(first, min(first + count, len(self.server.events))):
            self.write(self.block(number))

    def block(self, number: int, end: str = LF) -> str:
        return f"event: message{end}id: {number}{end}data: {json.dumps(self.server.events[number])}{end}{end}"


class SseServer(ThreadingHTTPServer):
    """Serves `events` (JSON values; the id of one is its number). `requests` holds the headers of each request so far."""

    daemon_threads = True

    def __init__(self, events: list, script: list[Behaviour], host: str, port: int):
        super().__init__((host, port), Answer)
        self.events, self.script = events, script
        self.requests: list[Message] = []
        self.lock, self.closing = threading.Lock(), threading.Event()

    @property
    def url(self) -> str:
        return f"http://{self.server_address[0]}:{self.server_port}/v2/stream/recentchange"


@contextmanager
def serving(events: list, *script: Behaviour, host: str = "127.0.0.1", port: int = 0) -> Iterator[SseServer]:
    server = SseServer(events, list(script), host, port)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        server.server_close()


def hold(answer: Answer):
    """Everything that there is, and then nothing, on an open connection."""
    answer.open()
    answer.events(answer.first, len(answer.server.events))
    answer.server.closing.wait()


def drop_after(count: int) -> Behaviour:
    def behave(answer: Answer):
        answer.open()
        answer.events(answer.first, count)

    return behave


def stall_after(count: int) -> Behaviour:
    def behave(answer: Answer):
        answer.open()
        answer.events(answer.first, count)
        answer.server.closing.wait()

    return behave


def half_an_event_after(count: int) -> Behaviour:
    def behave(answer: Answer):
        answer.open()
        answer.events(answer.first, count)
        block = answer.block(answer.first + count)
        answer.write(block[: len(block) * 2 // 3])

    return behave


def repeat_from(back: int, count: int) -> Behaviour:
    """Sends `count` events again from some before those that the client has, as one that keeps times and not positions."""

    def behave(answer: Answer):
        answer.open()
        answer.events(max(0, answer.first - back), count)

    return behave


def refuse(status: int, **headers: str) -> Behaviour:
    def behave(answer: Answer):
        answer.send_response(status)
        for name, value in headers.items():
            answer.send_header(name.replace("_", "-"), value)
        answer.end_headers()

    return behave


def drip(answer: Answer):
    """Comments, lines that end with CR LF, an event over several lines of data, and one in small pieces."""
    answer.open()
    answer.write(":ok\n\n: still there\n\n")
    answer.write(answer.block(answer.first, CRLF))
    lines = json.dumps(answer.server.events[answer.first + 1], indent=1).splitlines()
    answer.write(f"id: {answer.first + 1}\n" + "".join(f"data: {line}\n" for line in lines) + "\n")
    for piece in answer.block(answer.first + 2):
        answer.write(piece)
        time.sleep(0.0005)
    answer.events(answer.first + 3, len(answer.server.events))
    answer.server.closing.wait()
