"""A schema registry of one's own: who asks, and whom to trust."""

import pytest
from certificates import Authority

from streamgauge.errors import StreamgaugeError
from streamgauge.registry_server import RegistryServer, refuse_user_info

SECRET = "battery-staple"


@pytest.fixture
def read(tmp_path):
    def of(text, **environment):
        path = tmp_path / "registry.properties"
        path.write_text(text)
        return RegistryServer.read("https://registry:8081", path, environment)

    return of


def test_user_and_certificates_in_the_names_of_its_client(read, tmp_path):
    authority = Authority("tests")
    ca, own = authority.pem(tmp_path / "ca.pem"), authority.issue("app").pem(tmp_path / "own.pem", SECRET)
    server = read(
        f"basic.auth.credentials.source=USER_INFO\nbasic.auth.user.info=app:${{env:PASSWORD}}\nschema.registry.ssl.truststore.type=PEM\n"
        f"schema.registry.ssl.truststore.location={ca}\nssl.keystore.type=PEM\nssl.keystore.location={own}\nssl.key.password={SECRET}",
        PASSWORD=SECRET,
    )
    assert server.client_config() == {
        "url": "https://registry:8081",
        "basic.auth.user.info": f"app:{SECRET}",
        "ssl.ca.location": str(ca),
        "ssl.certificate.location": str(own),
        "ssl.key.password": SECRET,
    }
    assert SECRET not in f"{server} {server!r}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("acks=all", "acks is not known here; expected nothing but basic.auth.credentials.source, "),
        ("basic.auth.user.info=app", "basic.auth.user.info has no colon; expected name:password"),
        ("basic.auth.credentials.source=URL", "basic.auth.credentials.source is URL; expected USER_INFO"),
        ("ssl.truststore.location=/ca.jks", "ssl.truststore.type is JKS, by default; expected PEM"),
    ],
)
def test_one_clear_line_for_what_cannot_be_followed(read, text, expected):
    with pytest.raises(StreamgaugeError) as raised:
        read(text)
    assert str(raised.value).partition("registry.properties: ")[2].startswith(expected)


def test_a_password_in_the_address_is_refused_and_not_repeated():
    with pytest.raises(StreamgaugeError, match=r"^SCHEMA_REGISTRY_URL holds a name and password; put them into a file") as raised:
        refuse_user_info(f"https://app:{SECRET}@registry:8081")
    assert SECRET not in str(raised.value)
    assert refuse_user_info("http://registry:8081/a@b/") == "http://registry:8081/a@b"
