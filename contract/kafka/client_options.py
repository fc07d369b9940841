"""Further options of Spark's Kafka clients, by Kafka's own names: `max.poll.records=10000 compression.type=zstd`."""

from contract.errors import StreamgaugeError

VARIABLE = "STREAMGAUGE_KAFKA_OPTIONS"
_SECURITY = "which KAFKA_CLIENT_PROPERTIES is for: an option of a query is shown in plans and logs"
_SPARK = "which Spark sets itself"
_ONCE = "without whose value Kafka may store a record twice, lose it or reorder it"
_PARTITION = "and all records of a key must be in one partition"
_REFUSED = {
    "bootstrap.servers": "which KAFKA_BOOTSTRAP_SERVERS is for",
    "acks": _ONCE,
    "enable.idempotence": _ONCE,
    "max.in.flight.requests.per.connection": _ONCE,
    "retries": _ONCE,
    "transactional.id": "and Spark's sink writes without transactions",
    "partitioner.class": _PARTITION,
    "partitioner.ignore.keys": _PARTITION,
    "max.request.size": "without whose value a large dead letter cannot be written",
    "group.id": "and queries in one group take each other's records",
    "auto.offset.reset": "which STREAMGAUGE_STARTING_OFFSETS is for",
    "enable.auto.commit": _SPARK,
    "interceptor.classes": "which can change records unseen",
    **dict.fromkeys(("key.deserializer", "value.deserializer", "key.serializer", "value.serializer"), _SPARK),
}
_REFUSED_PREFIXES = ("sasl.", "ssl.", "security.", "config.providers")


def client_options(text: str) -> dict[str, str]:
    """The options in `text`, by name. They are separated by blanks, and their values have none.

    Raises StreamgaugeError for an option that would break a promise, and ValueError for text in another form.
    """
    options: dict[str, str] = {}
    for one in text.split():
        name, equals, value = one.partition("=")
        name = name.removeprefix("kafka.")
        if not (name and equals and value) or name in options:
            raise ValueError(one)
        reason = _SECURITY if name.startswith(_REFUSED_PREFIXES) else _REFUSED.get(name)
        if reason is not None:
            msg = f"{VARIABLE} holds {name}, {reason}; leave it out"
            raise StreamgaugeError(msg)
        options[name] = value
    return options


def checked_options(text: str) -> str:
    """`text`, if `client_options` accepts it. Raises as it does."""
    client_options(text)
    return text
