"""The schema registry that all programs use: its address, TLS and credentials."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from infrastructure.errors import StreamgaugeError
from infrastructure.security.properties_file import PropertiesFile
from infrastructure.security.tls import PEM, Tls

VARIABLE = "SCHEMA_REGISTRY_PROPERTIES"
_USER_INFO = "basic.auth.user.info"
_KNOWN = {
    "basic.auth.credentials.source",
    _USER_INFO,
    *(f"ssl.{store}.{attribute}" for store in ("truststore", "keystore") for attribute in ("type", "location")),
    "ssl.key.password",
}


@dataclass(frozen=True)
class RegistryServer:
    """A schema registry. Hashable; as text it is only its `url`. user_info: "name:password" for basic authentication."""

    url: str
    tls: Tls = field(default=Tls(), repr=False)
    user_info: str = field(default="", repr=False)

    def __str__(self) -> str:
        return self.url

    @classmethod
    def read(cls, url: str, path: Path, environment: Mapping[str, str]) -> Self:
        """The registry at `url` with the properties file at `path`, in Confluent's names. Raises StreamgaugeError if they are invalid."""
        properties = PropertiesFile.read(path.absolute(), environment, VARIABLE)
        properties.check_names(_KNOWN)
        user_info = properties.value(_USER_INFO) or ""
        if user_info and ":" not in user_info:
            msg = f"{_USER_INFO} has no colon; expected name:password"
            raise properties.error(msg)
        for store in ("truststore", "keystore"):
            if f"ssl.{store}.location" in properties.texts and (store_type := properties.value(f"ssl.{store}.type")) != PEM:
                msg = f"ssl.{store}.type is {store_type or 'JKS, by default'}; expected PEM, which the registry's client can read"
                raise properties.error(msg)
        return cls(url, Tls.of(properties), user_info)

    def client_options(self) -> dict[str, Any]:
        """The options of an HTTP client for it: credentials and TLS."""
        options: dict[str, Any] = {}
        if self.user_info:
            options["auth"] = tuple(self.user_info.split(":", 1))
        if self.tls != Tls():
            options["verify"] = self.tls.context()
        return options


def refuse_user_info(url: str) -> str:
    """`url` without trailing slashes. Raises StreamgaugeError if it contains a user, as messages show it; ValueError if it is no URL."""
    if "@" in url.partition("://")[2].partition("/")[0]:
        msg = f"SCHEMA_REGISTRY_URL holds a name and password; put them into a file that {VARIABLE} names, as {_USER_INFO}=name:password"
        raise StreamgaugeError(msg)
    _ = urlsplit(url).port  # parses the port; a password with a slash would be taken for one
    return url.rstrip("/")
