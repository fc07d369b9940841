"""Records that no client of ours would write, sent in Kafka's own protocol: https://kafka.apache.org/documentation/#recordbatch."""

import socket
from struct import pack, unpack

_PRODUCE, _VERSION, _NO_CHECKSUM = 0, 7, 0


def write_raw(settings, topic, value, *, headers=(), timestamp_ms=0, partition=0):
    """Writes one record to a broker of `mock_kafka`, which takes it without a checksum. headers: names and values, as bytes."""
    fields = b"\0" + _varint(0) * 2 + _varint(-1) + _sized(value) + _varint(len(headers))
    record = _sized(fields + b"".join(map(_sized, (part for header in headers for part in header))))
    batch = pack(">ibihiqqqhii", 0, 2, _NO_CHECKSUM, 0, 0, timestamp_ms, timestamp_ms, -1, -1, -1, 1) + record
    batch = pack(">qi", 0, len(batch)) + batch
    request = pack(">hhihhhiih", _PRODUCE, _VERSION, 1, -1, -1, 1, 10_000, 1, len(topic)) + topic.encode()
    request += pack(">iii", 1, partition, len(batch)) + batch
    host, port = settings.bootstrap_servers.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection, connection.makefile("rb") as answers:
        connection.sendall(pack(">i", len(request)) + request)
        answer = answers.read(*unpack(">i", answers.read(4)))
    start = 4 + 4 + 2 + len(topic) + 4 + 4  # correlation id, number of topics, topic, number of partitions, partition
    (error,) = unpack(">h", answer[start : start + 2])
    assert error == 0, f"Kafka's error {error}"


def _sized(value):
    return _varint(len(value)) + value


def _varint(number):
    zigzag, encoded = (number << 1) ^ (number >> 63), b""
    while zigzag > 0x7F:
        zigzag, encoded = zigzag >> 7, encoded + bytes([zigzag & 0x7F | 0x80])
    return encoded + bytes([zigzag])
