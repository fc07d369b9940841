"""Fetching a month, from a server on this machine that drops connections, changes its mind, or is not there."""

import hashlib
import http.server
import random
import threading
from io import StringIO

import pytest
from rich.console import Console

from producers.taxi_download import fetch_month
from streamgauge.errors import StreamgaugeError

CONTENT = random.Random(1).randbytes(1_000_000)
MONTH, NAME = "2024-03", "green_tripdata_2024-03.parquet"


class TripData(http.server.ThreadingHTTPServer):
    """Serves one file by ETag and Range. drop_after: of each connection in turn, so many bytes are sent (None: all of them)."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.status, self.knows_ranges, self.has_etag = CONTENT, 200, True, True
        self.drop_after, self.requests = [], []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/trip-data"

    @property
    def etag(self):
        return f'"{hashlib.sha256(self.content).hexdigest()}"'


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        server.requests.append(self.headers.get("Range"))
        if server.status != 200 or not self.path.endswith(NAME):
            self.send_error(server.status if server.status != 200 else 403)
            return
        start = 0
        if (asked := self.headers.get("Range")) and server.knows_ranges and self.headers.get("If-Range") == server.etag:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
        body = server.content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        if server.has_etag:
            self.send_header("ETag", server.etag)
        self.end_headers()
        sent = server.drop_after.pop(0) if server.drop_after else None
        self.wfile.write(body[:sent])

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
        return fetch_month(month, tmp_path, Console(file=StringIO()), url=url or server.url, pause_seconds=0)

    return fetch_it


def test_a_month_is_fetched_once_and_nothing_else_stays(server, fetch, tmp_path):
    assert fetch() == fetch() == tmp_path / "taxi" / NAME
    assert fetch().read_bytes() == CONTENT
    assert server.requests == [None]
    assert not list(tmp_path.rglob("*.part")) + list(tmp_path.rglob("*.etag"))


def test_a_connection_that_drops_is_taken_up_where_it_ended(server, fetch):
    server.drop_after = [500_000, 150_000, 150_000, 150_000]
    assert fetch().read_bytes() == CONTENT
    starts = [int(asked.removeprefix("bytes=").removesuffix("-")) for asked in server.requests[1:]]
    assert len(starts) == 4
    assert 400_000 <= starts[0] <= 500_000
    assert starts == sorted(set(starts))


def test_what_was_fetched_is_kept_for_the_next_command(server, fetch, tmp_path):
    server.drop_after = [500_000, 0, 0, 0]
    with pytest.raises(StreamgaugeError, match=r"0\.5 MB are kept, and the same command goes on from there"):
        fetch()
    assert not (tmp_path / "taxi" / NAME).exists()
    server.requests.clear()
    assert fetch().read_bytes() == CONTENT
    assert server.requests[0].startswith("bytes=4")


def test_a_file_that_changed_meanwhile_is_fetched_anew(server, fetch):
    server.drop_after = [500_000, 0, 0, 0]
    with pytest.raises(StreamgaugeError):
        fetch()
    server.content = CONTENT[::-1]
    assert fetch().read_bytes() == CONTENT[::-1]


@pytest.mark.parametrize("lacking", ["knows_ranges", "has_etag"])
def test_a_server_that_cannot_resume_sends_everything_again(server, fetch, lacking):
    setattr(server, lacking, False)
    server.drop_after = [500_000]
    assert fetch().read_bytes() == CONTENT


def test_a_month_that_is_not_published_is_one_line(fetch):
    with pytest.raises(StreamgaugeError, match=r"there is no .*green_tripdata_2039-01.parquet \(HTTP 403\).*--file.*simulation"):
        fetch("2039-01")


def test_a_server_in_trouble_is_one_line(server, fetch):
    server.status = 503
    with pytest.raises(StreamgaugeError, match=r"HTTP 503\); try again later.*--file"):
        fetch()


def test_without_a_network_the_other_sources_are_named(fetch):
    with pytest.raises(StreamgaugeError, match=r"could not fetch http://127.0.0.1:9/.*\(ConnectionError\).*--file.*simulation") as raised:
        fetch(url="http://127.0.0.1:9")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("month", ["", "2024", "2024-13", "2024-3", "March", "../../etc", "2024-03\n"])
def test_what_is_no_month_is_refused(fetch, server, month):
    with pytest.raises(StreamgaugeError, match="expected a year and a month, such as 2024-03"):
        fetch(month)
    assert server.requests == []


def test_a_cache_that_cannot_be_written_is_named(server, tmp_path):
    (tmp_path / "taxi").write_text("a file where the folder should be")
    with pytest.raises(StreamgaugeError, match=r"could not write .*STREAMGAUGE_CACHE"):
        fetch_month(MONTH, tmp_path, Console(file=StringIO()), url=server.url)
