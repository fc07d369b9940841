"""A name and password in a URL of the settings reach no message, notice or file."""

import hashlib
import http.server
import threading
import time
from dataclasses import replace

import pytest

from infrastructure.errors import StreamgaugeError
from infrastructure.java import jars
from infrastructure.settings import Settings
from infrastructure.text import without_credentials
from producers.delivery.events import Idle
from producers.wikimedia.live import LiveStream, Patience
from producers.wikimedia.position import Position
from streamgauge.operations.doctor.findings import Finding
from streamgauge.operations.health import web_problem

SECRET = "s3cret"
URL_SETTINGS = [variable for variable in Settings().environment() if variable.endswith(("_URL", "_URI"))]
LOCK = '[[artifact]]\nbundle = "test"\ncoordinate = "org.example:thing:1.0"\nsha256 = "{}"\nbytes = 6\nfor = "a test"\n'


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("401 for url: https://app:s3cret@host:8081/a, see the log", "401 for url: https://***@host:8081/a, see the log"),
        ("a token: https://s3cret@host/a", "a token: https://***@host/a"),
        ("an @ in it: http://app:s3@cret@host", "an @ in it: http://***@host"),
        ("a slash in it: http://app:s3/s3cret@host", "a slash in it: http://***@host"),
        ("two: http://a:s3cret@one http://b:s3cret@two", "two: http://***@one http://***@two"),
        ("after a container: abfss://a@b,http://c:s3cret@d", "after a container: abfss://a@b,http://***@d"),
        ("a proxy: 'HTTPS://app:s3cret@proxy:3128'", "a proxy: 'HTTPS://***@proxy:3128'"),
        ("none: http://host:8081/a and p0@1", "none: http://host:8081/a and p0@1"),
        ("a container: abfss://lake@account.dfs.core.windows.net/tables", "a container: abfss://lake@account.dfs.core.windows.net/tables"),
    ],
)
def test_what_stands_before_the_host_of_a_url_is_hidden(text, shown):
    assert without_credentials(text) == shown


@pytest.mark.parametrize("word", ["name.", "http://host,"])
def test_a_long_text_is_read_once_and_not_once_for_each_word(word):
    text = word * 1_000_000
    assert without_credentials(text) == text


def test_errors_findings_and_health_checks_hide_it():
    url = f"http://app:{SECRET}@127.0.0.1:9"
    shown = [str(StreamgaugeError(f"no {url}")), Finding("registry", "problem", f"no {url}").message, web_problem(url)]
    assert [text for text in shown if SECRET in text] == []


@pytest.mark.parametrize("variable", URL_SETTINGS)
def test_a_password_with_a_slash_is_refused_instead_of_being_taken_for_a_port_and_path(variable):
    assert refusal(variable, "https://app:s3/cret@host")


def refusal(variable, text):
    """The message about a setting; empty if it is taken."""
    try:
        Settings.from_environment({variable: text})
    except StreamgaugeError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("variable", URL_SETTINGS)
@pytest.mark.parametrize("text", ["ftp://app:s3cret@host/x", "app:s3cret@host", "https://app:s3/cret@host", "s3a://app:s3cret@bucket/x"])
def test_a_setting_that_is_refused_does_not_repeat_it(variable, text):
    assert "cret" not in refusal(variable, text)


@pytest.mark.parametrize(
    ("variable", "text"), [("AWS_ENDPOINT_URL", "https://app:s3cret@store"), ("CHECKPOINT_URI", "s3a://key:s3cret@bucket/checkpoints")]
)
def test_where_libraries_would_print_the_address_credentials_are_refused(variable, text):
    with pytest.raises(StreamgaugeError, match=rf"^{variable} is '\*\*\*@"):
        Settings.from_environment({variable: text})


@pytest.fixture
def repository():
    """A Maven repository that requires a name and password, and holds one file that is not what the lock names."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.headers["Authorization"])
            self.send_response(200 if "thing" in self.path else 403)
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"other")

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://app:{SECRET}@127.0.0.1:{server.server_address[1]}/maven"
        server.shutdown()
    assert set(asked) <= {"Basic YXBwOnMzY3JldA=="}, "the repository was not given the name and password"


@pytest.mark.parametrize(
    ("artifact", "address", "reason"),
    [
        ("thing", None, "is not the file that jars.lock names"),
        ("other", None, "HTTP 403"),
        ("thing", f"http://app:{SECRET}@127.0.0.1:9", "Connection refused"),
        ("thing", f"htp://app:{SECRET}@host", "unsupported protocol"),
    ],
)
def test_a_repository_with_a_password_is_named_without_it(artifact, address, reason, repository, tmp_path):
    lock = tmp_path / "jars.lock"
    lock.write_text(LOCK.format(hashlib.sha256(b"wanted").hexdigest()).replace("thing", artifact))
    settings = replace(Settings(home=tmp_path, cache=tmp_path / "cache"), maven_url=address or repository)
    with pytest.raises(StreamgaugeError, match=reason) as raised:
        jars.fetch("test", settings, lock)
    assert SECRET not in str(raised.value)


def test_a_live_stream_that_cannot_be_reached_is_named_without_it_and_its_position_is_kept_without_it(tmp_path):
    url, notices = f"http://app:{SECRET}@127.0.0.1:9/stream", []
    stream = LiveStream(url, "a test", "", notices.append, Patience(connect=1, silence=1, first_wait=0.01, longest_wait=0.01))
    list(stream.messages(Idle(time.sleep, lambda: bool(notices))))
    assert notices == ["cannot reach the stream at http://***@127.0.0.1:9/stream (Connection refused); trying again until it answers"]

    position = Position(tmp_path / "position", url)
    position.acknowledged(position.read("7"))
    position.save()
    assert SECRET not in (tmp_path / "position").read_text()
    assert Position(tmp_path / "position", url).last_event_id == "7"
