"""A record as it is printed: in a few lines for a person, or as a line of JSON for a program. Both are safe to print."""

from datetime import UTC, datetime
from typing import Any

import orjson
from confluent_kafka import Message

from infrastructure.kafka.record_headers import headers_of
from infrastructure.kafka.result_table import timestamp_ms_of
from infrastructure.text import escaped, utc_text
from streamgauge.records.decoding import Decoded, Decoder, without_schema


class Shown:
    """A record with its key, headers and value decoded."""

    def __init__(self, message: Message, key: Decoded, decoder: Decoder) -> None:
        self._topic, self._partition, self._offset = message.topic(), message.partition(), message.offset()
        self._timestamp_ms = timestamp_ms_of(message)
        self._key, self._value = key, decoder.decoded(message.value())
        self._headers = [(name, without_schema(value)) for name, value in headers_of(message)]

    def as_text(self) -> str:
        """Position, time and schema; then the key, each header and the value on a line of its own."""
        ids = (("schema", self._value.schema_id), ("key schema", self._key.schema_id))
        head = [
            f"{self._topic}-{self._partition} @ {self._offset}",
            self._time or "no time",
            *(f"{name} {schema_id}" for name, schema_id in ids if schema_id is not None),
        ]
        lines = [("key", self._key), *((f"header   {escaped(name)}:", decoded) for name, decoded in self._headers), ("value", self._value)]
        return "\n".join([", ".join(head), *(_line(name, decoded) for name, decoded in lines)])

    def as_json(self) -> str:
        """An object with topic, partition, offset, timestamp, key, headers and value.

        JSON and Avro are JSON; other text, and hex, are strings. key_form and value_form tell which. key_note and value_note: as `Decoded.note`.
        """
        row = {
            "topic": self._topic,
            "partition": self._partition,
            "offset": self._offset,
            "timestamp": self._time,
            **_fields("key", self._key),
            "headers": [{"name": name, "value": _json(decoded)} for name, decoded in self._headers],
            **_fields("value", self._value),
        }
        return escaped(orjson.dumps(row).decode())

    @property
    def _time(self) -> str | None:
        return None if self._timestamp_ms is None else utc_text(datetime.fromtimestamp(self._timestamp_ms / 1000, UTC))


def _line(name: str, decoded: Decoded) -> str:
    text = {None: "(null)", "hex": f"hex {decoded.text}"}.get(decoded.form, decoded.text or "(empty)")
    return f"  {name:<8} {text}" + (f"\n  {'':<8} ({decoded.note})" if decoded.note else "")


def _fields(name: str, decoded: Decoded) -> dict[str, Any]:
    more = {f"{name}_schema_id": decoded.schema_id, f"{name}_note": decoded.note}
    return {name: _json(decoded), f"{name}_form": decoded.form, **{field: value for field, value in more.items() if value is not None}}


def _json(decoded: Decoded) -> Any:  # noqa: ANN401 - any JSON value
    if decoded.form in {"json", "avro"}:
        return orjson.Fragment(decoded.text)
    return decoded.data if decoded.form == "text" else decoded.text if decoded.form == "hex" else None
