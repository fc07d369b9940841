"""Client of a Confluent-compatible schema registry."""

from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import TypeVar

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from infrastructure.errors import StreamgaugeError, Unavailable
from infrastructure.registry.server import VARIABLE, RegistryServer
from infrastructure.web.client import client

ANSWER_SECONDS = 5
"""Timeout of a request."""
AVRO = "AVRO"
NO_SUCH_THING = {40401, 40402, 40403}
"""The registry's codes for an unknown subject, version and schema. A plain 404 means that there is no registry under that path."""
_TLS_FAILURE = "[SSL: "
"""Prefix of error messages of Python's ssl. A retry does not fix a certificate problem."""
T = TypeVar("T")


class RegistryUnavailable(Unavailable):
    """The registry does not answer."""

    server = "the schema registry"


class SchemaRegistry:
    """The schema registry at `server`. Every method raises RegistryUnavailable when it does not answer."""

    def __init__(self, server: RegistryServer) -> None:
        self.url = server.url
        self.client = SchemaRegistryClient({"url": server.url, "max.retries": 0})
        # Its own session has neither the authorities of this machine nor a way around proxies to loopback.
        self.client._rest_client.session = client(connect=ANSWER_SECONDS, silence=ANSWER_SECONDS, **server.client_options())

    def subjects(self) -> list[str]:
        """All subjects. Raises StreamgaugeError also when what answers is no schema registry."""
        return self._ask(self.client.get_subjects) or []

    @property
    def compatibility(self) -> str | None:
        """The rule for new versions of a schema, such as BACKWARD. None if the registry does not tell."""
        return self._ask(self.client.get_compatibility)

    def set_compatibility(self, rule: str) -> None:
        self._ask(partial(self.client.set_compatibility, level=rule))

    def versions(self, subject: str) -> dict[int, str]:
        """The Avro schemas of `subject` in JSON, by id, oldest first. Empty if the registry does not have the subject."""
        numbers = self._ask(partial(self.client.get_versions, subject)) or []
        registered = [self._ask(partial(self.client.get_version, subject, number)) for number in numbers]
        return {version.schema_id: text for version in registered if version and version.schema_id and (text := _avro(version.schema))}

    def schema(self, schema_id: int) -> str | None:
        """The Avro schema with that id, of any subject, in JSON. None if the registry does not have it."""
        return _avro(self._ask(partial(self.client.get_schema, schema_id)))

    def register(self, subject: str, text: str) -> int:
        """Registers an Avro schema if necessary, and returns its id. Raises StreamgaugeError when the registry rejects it."""
        try:
            return self._answered(partial(self.client.register_schema, subject, Schema(text, AVRO)))
        except SchemaRegistryError as error:
            msg = f"the schema registry at {self.url} refuses the schema of {subject}: {error.error_message}; a new version must be able to read what older ones wrote"
            raise StreamgaugeError(msg) from error

    def _ask(self, question: Callable[[], T]) -> T | None:
        """The answer. None if the registry does not have the requested item."""
        try:
            return self._answered(question)
        except SchemaRegistryError as error:
            if error.error_code in NO_SUCH_THING:
                return None
            msg = f"the schema registry at {self.url} does not answer as expected: {error.error_message} (HTTP {error.http_status_code}); check that SCHEMA_REGISTRY_URL is the address of a Confluent-compatible API"
            raise StreamgaugeError(msg) from error

    def _answered(self, question: Callable[[], T]) -> T:
        try:
            return question()
        except SchemaRegistryError as error:
            reason = f"HTTP {error.http_status_code}"
            if error.http_status_code in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
                raise self._refused(reason) from error
            if error.http_status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
                raise
            raise self._away(reason) from error
        except Exception as error:  # the client passes on any error of its HTTP library
            if _TLS_FAILURE in str(error):
                raise self._refused(str(error)) from error
            raise self._away(str(error) or type(error).__name__) from error

    def _refused(self, reason: str) -> StreamgaugeError:
        return StreamgaugeError(
            f"the schema registry at {self.url} denies access, or its certificate is not trusted ({reason}); "
            f"correct basic.auth.user.info or the ssl.* properties in a file that {VARIABLE} names, or the registry's rights"
        )

    def _away(self, reason: str) -> RegistryUnavailable:
        return RegistryUnavailable(
            f"no schema registry answers at {self.url} ({reason}); if SCHEMA_REGISTRY_URL names it, start that registry or correct the setting, "
            "otherwise start one with `streamgauge up`"
        )


def _avro(schema: Schema | None) -> str | None:
    """The schema in JSON if it is Avro. A registry omits the type for Avro schemas."""
    return schema.schema_str if schema and schema.schema_type in {None, AVRO} else None
