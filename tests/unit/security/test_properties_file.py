"""Properties files by the rules of Java's, and references by those of Kafka's config providers."""

from pathlib import Path

import pytest
from messages import refused

from infrastructure.security.properties_file import PropertiesFile


@pytest.fixture
def properties(tmp_path):
    def read(text, **environment):
        path = tmp_path / "client.properties"
        path.write_text(text)
        return PropertiesFile.read(path, environment, "KAFKA_CLIENT_PROPERTIES")

    return read


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb = 2 \nc: 3\nd 4", {"a": "1", "b": "2 ", "c": "3", "d": "4"}),
        ("# note\n! note\n\n  a=1", {"a": "1"}),
        ("a=one\\\n    two\\\n  three\nb=x", {"a": "onetwothree", "b": "x"}),
        ("a=one\\\\\nb=x", {"a": "one\\", "b": "x"}),
        (r"a=tab\tquote\"uni\u0041 back\\u0041", {"a": 'tab\tquote"uniA back\\u0041'}),
        (r"a\=b=c", {"a=b": "c"}),
        ("a=\nb", {"a": "", "b": ""}),
        ('jaas=x required username="u=v" password="p:q";', {"jaas": 'x required username="u=v" password="p:q";'}),
    ],
)
def test_reads_what_java_reads(properties, text, expected):
    assert properties(text).texts == expected


def test_follows_references_to_the_environment_to_properties_and_to_files(properties, tmp_path):
    (tmp_path / "secrets.properties").write_text("one=first\n")
    (tmp_path / "two").write_text("second")
    found = properties(
        f"a=${{env:NAME}}/${{file:{tmp_path}/secrets.properties:one}}/${{directory:{tmp_path}:two}}/${{dir:{tmp_path}:two}}", NAME="zero"
    )
    assert found.value("a") == "zero/first/second/second"
    assert found.texts["a"].startswith("${env:NAME}/")
    assert found.value("b") is None


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("${env:NAME}", [" NAME"]),
        ("${file:/none:key}", ["No such file or directory"]),
        ("${vault:path:key}", ["${env:NAME}", "${file:/path:key}", "${directory:/path:name}"]),
        ("${file:key}", ["${env:NAME}", "${file:/path:key}", "${directory:/path:name}"]),
    ],
)
def test_a_reference_that_leads_nowhere_is_one_line(properties, reference, expected):
    with refused("client.properties: a ", reference, *expected):
        properties(f"a={reference}").value("a")


def test_a_file_that_ends_with_a_line_break_would_be_another_password_to_java(properties, tmp_path):
    (tmp_path / "password").write_text("secret\n")
    with refused(str(tmp_path), "line break") as raised:
        properties(f"a=${{directory:{tmp_path}:password}}").value("a")
    assert "secret" not in str(raised.value)


def test_the_file_that_is_named_must_be_there():
    with refused("KAFKA_CLIENT_PROPERTIES=/none", "No such file or directory"):
        PropertiesFile.read(Path("/none"), {}, "KAFKA_CLIENT_PROPERTIES")


def test_a_broken_escape_is_one_line_without_the_value(properties):
    with refused("client.properties cannot be read", r"\u", "four hexadecimal digits") as raised:
        properties(r"a=secret\u12")
    assert "secret" not in str(raised.value)


def test_providers_that_a_file_names_for_kafkas_tools_are_passed_over(properties):
    assert properties("config.providers=env\nconfig.providers.env.class=x\na=1").texts == {"a": "1"}


def test_its_text_holds_no_value(properties):
    assert "secret" not in repr(properties("a=secret", B="secret"))


def test_a_property_that_is_not_supported_is_named_and_a_secret_on_a_line_of_its_own_is_not(properties):
    with refused("no supported property in", "sasl.pasword, ***; there are sasl.password"):
        properties("sasl.pasword=1\nsasl.password=\ns3cret").check_names({"sasl.password"})
