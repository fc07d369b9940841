"""Proxies and certificates of HTTP requests, with a real SOCKS proxy and a real TLS server whose authority this machine does not know."""

import os
import ssl
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import httpx2
import pytest
from certificates import Authority
from messages import refused
from running import free_ports
from socks_server import serving as serving_socks
from web_server import Quiet, answering, serving

from infrastructure.registry.client import SchemaRegistry
from infrastructure.registry.server import RegistryServer
from infrastructure.web.client import client, reason
from infrastructure.web.proxies import prepare_proxies

LOOPBACK = "127.0.0.1,localhost,::1"
SECRET = "s3cret"


class NoSubjects(Quiet, BaseHTTPRequestHandler):
    """A registry without subjects, and a page for everything else."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"[]")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch):
    """The test's own environment, in which no proxy is set. `prepare_proxies` changes it."""
    monkeypatch.setattr(os, "environ", {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")})


@pytest.fixture
def page():
    with answering(NoSubjects) as url:
        yield url


@pytest.fixture
def authority():
    return Authority("a company")


@pytest.fixture
def tls_server(authority, tmp_path):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.issue("server", ("127.0.0.1",)).pem(tmp_path / "server.pem"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), NoSubjects)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with serving(server) as url:
        yield url.replace("http://", "https://")


@pytest.mark.parametrize("scheme", ["socks", "socks5", "socks5h"])
def test_a_request_goes_through_a_socks_proxy(page, scheme):
    with serving_socks(urlsplit(page).port) as proxy:
        os.environ["ALL_PROXY"] = f"{scheme}://{proxy.address}/"
        prepare_proxies()
        with client() as web:
            assert web.get("http://files.example/").json() == []
    assert proxy.asked == ["files.example"]


@pytest.mark.parametrize("variable", ["ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy"])
@pytest.mark.parametrize("scheme", ["socks", "socks5", "http"])
def test_no_proxy_leads_to_this_machine(page, variable, scheme):
    os.environ[variable] = f"{scheme}://127.0.0.1:{free_ports(1)[0]}/"
    prepare_proxies()
    with client() as web:
        assert web.get(page.replace("127.0.0.1", "localhost")).json() == web.get(page).json() == []
    assert SchemaRegistry(RegistryServer(page)).subjects() == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {}),
        ({"HTTPS_PROXY": "http://proxy:3128"}, {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": LOOPBACK}),
        ({"all_proxy": "socks://127.0.0.1:1080/"}, {"ALL_PROXY": "socks5://127.0.0.1:1080", "NO_PROXY": LOOPBACK}),
        ({"http_proxy": "proxy:3128"}, {"HTTP_PROXY": "http://proxy:3128", "NO_PROXY": LOOPBACK}),
        ({"NO_PROXY": "kafka.example.com,.corp"}, {"NO_PROXY": f"kafka.example.com,.corp,{LOOPBACK}"}),
        ({"NO_PROXY": "localhost"}, {"NO_PROXY": "localhost,127.0.0.1,::1"}),
        ({"NO_PROXY": "*"}, {"NO_PROXY": "*"}),
    ],
)
def test_variables_become_what_every_client_takes(before, after):
    os.environ |= before
    prepare_proxies()
    assert {name: value for name, value in os.environ.items() if name.endswith("_PROXY")} == after
    assert {name: os.environ[name.lower()] for name in after if after != before} == ({} if after == before else after)


@pytest.mark.parametrize(
    "value",
    ["socks4://proxy:1080", "ftp://proxy", "http://", "http://proxy:port", f"gopher://user:{SECRET}@proxy", f"user:{SECRET}@proxy:port"],
)
def test_a_proxy_that_cannot_be_used_is_one_line_without_its_password(value):
    os.environ["HTTPS_PROXY"] = value
    with refused("HTTPS_PROXY=", "socks5://") as raised:
        prepare_proxies()
    assert SECRET not in str(raised.value)


def test_a_command_ends_with_that_line():
    os.environ["ALL_PROXY"] = "socks4://127.0.0.1:1080"
    done = subprocess.run([sys.executable, "-m", "streamgauge.cli", "status"], env=os.environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("error: ALL_PROXY=socks4://127.0.0.1:1080 ")


def test_a_certificate_of_an_unknown_authority_is_refused_with_what_to_do(tls_server):
    with client() as web, pytest.raises(httpx2.ConnectError) as raised:
        web.get(tls_server)
    assert "certificate is not trusted: self-signed certificate in certificate chain; " in reason(raised.value)
    assert "SSL_CERT_FILE" in reason(raised.value)
    with refused(tls_server, "not trusted"):
        SchemaRegistry(RegistryServer(tls_server)).subjects()


def test_an_authority_that_this_machine_is_told_of_is_trusted(tls_server, authority, tmp_path):
    os.environ["SSL_CERT_FILE"] = str(authority.pem(tmp_path / "company.pem"))
    with client() as web:
        assert web.get(tls_server).json() == []
    assert SchemaRegistry(RegistryServer(tls_server)).subjects() == []
