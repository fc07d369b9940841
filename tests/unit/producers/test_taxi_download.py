"""Fetching a month, from a server on this machine that drops connections, gives something else, or is not there."""

import http.server
import random
import threading
from io import BytesIO, StringIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from messages import refused
from rich.console import Console

from producers.taxi.download import fetch_month

MONTH, NAME, HASH = "2024-03", "green_tripdata_2024-03.parquet", "green_tripdata_2024-03.sha256"


def parquet():
    buffer = BytesIO()
    pq.write_table(pa.table({"noise": [random.Random(1).randbytes(300_000)]}), buffer)
    return buffer.getvalue()


CONTENT = parquet()


class TripData(http.server.ThreadingHTTPServer):
    """Serves one file. sends: so many bytes of it, then it hangs up."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.status, self.sends, self.requests = CONTENT, 200, None, 0

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/trip-data"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        server.requests += 1
        if server.status != 200 or not self.path.endswith(NAME):
            self.send_error(server.status if server.status != 200 else 403)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(server.content)))
        self.end_headers()
        self.wfile.write(server.content[: server.sends])

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with TripData() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def fetch(server, tmp_path):
    def fetch_it(month=MONTH, url=None):
        return fetch_month(month, tmp_path, Console(file=StringIO()), url=url or server.url)

    return fetch_it


@pytest.fixture
def files(tmp_path):
    return lambda: [path.name for path in tmp_path.rglob("*") if path.is_file()]


def test_a_month_is_fetched_once_and_nothing_else_stays(server, fetch, files, tmp_path):
    assert fetch() == fetch() == tmp_path / "taxi" / NAME
    assert fetch().read_bytes() == CONTENT
    assert server.requests == 1
    assert sorted(files()) == [NAME, HASH]


@pytest.mark.parametrize("damage", [lambda content: content[:-9], lambda content: content[:999] + b"?" + content[1000:]])
def test_a_file_that_was_damaged_later_is_fetched_again(server, fetch, damage):
    fetch().write_bytes(damage(CONTENT))
    assert fetch().read_bytes() == CONTENT
    assert server.requests == 2


def test_a_file_whose_hash_was_damaged_later_is_fetched_again(server, fetch, tmp_path):
    fetch()
    (tmp_path / "taxi" / HASH).write_bytes(b"\xff")
    assert fetch().read_bytes() == CONTENT
    assert server.requests == 2


def test_a_connection_that_drops_leaves_nothing_and_the_next_call_fetches_all(server, fetch, files):
    server.sends = 100_000
    with refused(NAME, "received 100000 bytes", "--file"):
        fetch()
    assert files() == []
    server.sends = None
    assert fetch().read_bytes() == CONTENT


def test_what_is_no_parquet_is_one_line_and_is_not_kept(server, fetch, files):
    server.content = b"<html>Please log in</html>"
    with refused("http://", "Parquet", "--file"):
        fetch()
    assert files() == []


@pytest.mark.parametrize("status", [403, 503])
def test_a_refusal_is_one_line(server, fetch, status):
    server.status = status
    with refused(NAME, f"HTTP {status}", "--month", "--file", "simulation"):
        fetch()


def test_without_a_network_the_other_sources_are_named(fetch):
    with refused("http://127.0.0.1:9/", "Connection refused", "--file", "simulation"):
        fetch(url="http://127.0.0.1:9")


def test_a_cache_that_cannot_be_written_is_named(server, tmp_path):
    (tmp_path / "taxi").write_text("a file where the folder should be")
    with refused(str(tmp_path), "STREAMGAUGE_CACHE"):
        fetch_month(MONTH, tmp_path, Console(file=StringIO()), url=server.url)
