"""A schema registry of one's own: who asks, and whom to trust."""

import base64
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from certificates import Authority
from messages import refused

from infrastructure.registry.client import RegistryUnavailable, SchemaRegistry
from infrastructure.registry.server import RegistryServer, refuse_user_info
from infrastructure.settings import Settings
from streamgauge.operations.doctor import servers

SECRET = "battery-staple"


@pytest.fixture
def read(tmp_path):
    def of(text, **environment):
        path = tmp_path / "registry.properties"
        path.write_text(text)
        return RegistryServer.read("https://registry:8081", path, environment)

    return of


def test_user_and_certificates_in_the_names_of_its_client(read, authority, tmp_path):
    ca, own = authority.pem(tmp_path / "ca.pem"), authority.issue("app").pem(tmp_path / "own.pem", SECRET)
    server = read(
        f"basic.auth.credentials.source=USER_INFO\nbasic.auth.user.info=app:${{env:PASSWORD}}\nssl.truststore.type=PEM\n"
        f"ssl.truststore.location={ca}\nssl.keystore.type=PEM\nssl.keystore.location={own}\nssl.key.password={SECRET}",
        PASSWORD=SECRET,
    )
    options = server.client_options()
    assert options["auth"] == ("app", SECRET)
    assert [dict(*one["subject"])["commonName"] for one in options["verify"].get_ca_certs()] == ["tests"]
    assert SECRET not in f"{server} {server!r}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("acks=all", ["acks", "basic.auth.credentials.source, "]),
        ("basic.auth.user.info=app", ["basic.auth.user.info", "name:password"]),
        ("ssl.truststore.location=/ca.jks", ["ssl.truststore.type is JKS", "PEM"]),
    ],
)
def test_one_clear_line_for_what_cannot_be_followed(read, text, expected):
    with refused("registry.properties: ", *expected):
        read(text)


def test_a_password_in_the_address_is_refused_and_not_repeated():
    with refused("SCHEMA_REGISTRY_URL") as raised:
        refuse_user_info(f"https://app:{SECRET}@registry:8081")
    assert SECRET not in str(raised.value)
    assert refuse_user_info("http://registry:8081/a@b/") == "http://registry:8081/a@b"


class SecuredRegistry:
    """An empty registry that wants a certificate and a password."""

    def __init__(self, authority, folder):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(authority.issue("registry", ("127.0.0.1",)).pem(folder / "server.pem"))
        context.load_verify_locations(authority.pem(folder / "ca.pem"))
        context.verify_mode = ssl.CERT_REQUIRED
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _Asked)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self.server.server_address[1]}"


class _Asked(BaseHTTPRequestHandler):
    def do_GET(self):
        is_known = self.headers["Authorization"] == "Basic " + base64.b64encode(f"app:{SECRET}".encode()).decode()
        answers = {"/subjects": (200, []), "/config": (200, {"compatibilityLevel": "BACKWARD"})}
        status, body = (
            answers.get(self.path.partition("?")[0], (404, {"error_code": 40401, "message": "no such subject"})) if is_known else (401, {})
        )
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_):
        """Says nothing."""


@pytest.fixture(scope="module")
def authority():
    return Authority("tests")


class TestARegistryThatAsks:
    @pytest.fixture
    def asking(self, authority, tmp_path):
        registry = SecuredRegistry(authority, tmp_path)
        thread = threading.Thread(target=registry.server.serve_forever, daemon=True)
        thread.start()
        yield registry
        registry.server.shutdown()
        registry.server.server_close()

    @pytest.fixture
    def client(self, asking, authority, tmp_path):
        def come(password=SECRET, trusted=authority, shown=authority):
            path = tmp_path / "registry.properties"
            ca, own = trusted.pem(tmp_path / "trusted.pem"), shown.issue("app").pem(tmp_path / "own.pem", SECRET)
            path.write_text(
                f"basic.auth.user.info=app:{password}\nssl.truststore.type=PEM\nssl.truststore.location={ca}\n"
                f"ssl.keystore.type=PEM\nssl.keystore.location={own}\nssl.key.password={SECRET}\n"
            )
            return Settings(schema_registry_url=asking.url, schema_registry_properties=path)

        return come

    def test_lets_every_client_of_ours_in(self, client):
        settings = client()
        assert SchemaRegistry(settings.registry).versions("wikimedia-value") == {}
        (found,) = servers.registry(settings)
        assert (found.level, "BACKWARD" in found.message) == ("ok", True)

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            ({"password": "another"}, "HTTP 401"),
            ({"trusted": Authority("others")}, "CERTIFICATE_VERIFY_FAILED"),
            ({"shown": Authority("others")}, "alert"),
        ],
    )
    def test_says_in_a_line_that_it_does_not(self, client, change, reason):
        settings = client(**change)
        with refused("basic.auth.user.info") as raised:
            SchemaRegistry(settings.registry).versions("wikimedia-value")
        assert reason in str(raised.value).replace("ALERT", "alert")
        assert not isinstance(raised.value, RegistryUnavailable)
        with refused(reason) as found:
            servers.registry(settings)
        assert SECRET not in f"{raised.value} {found.value}"
