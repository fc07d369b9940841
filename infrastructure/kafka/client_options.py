"""Further options of Spark's Kafka clients, by Kafka's own names: `max.poll.records=10000 compression.type=zstd`."""

from infrastructure.errors import StreamgaugeError

VARIABLE = "STREAMGAUGE_KAFKA_OPTIONS"
_REFUSED = {
    # With other values, a record may be stored twice, lost or reordered, or a large dead letter cannot be written.
    *("acks", "enable.idempotence", "max.in.flight.requests.per.connection", "retries", "transactional.id", "max.request.size"),
    # All records of a key must be in one partition.
    *("partitioner.class", "partitioner.ignore.keys"),
    # Spark or other settings set these.
    *("bootstrap.servers", "group.id", "auto.offset.reset", "enable.auto.commit", "interceptor.classes"),
    *("key.deserializer", "value.deserializer", "key.serializer", "value.serializer"),
}
# Plans and logs show the options of a query.
_REFUSED_PREFIXES = ("sasl.", "ssl.", "security.", "config.providers")


def client_options(text: str) -> dict[str, str]:
    """The options in `text`, by name. They are separated by spaces, and their values contain none.

    Raises StreamgaugeError for an option that would break a promise, and ValueError for text in another form.
    """
    options: dict[str, str] = {}
    for option in text.split():
        name, equals, value = option.partition("=")
        name = name.removeprefix("kafka.")
        if not (name and equals and value) or name in options:
            raise ValueError(option)
        if name in _REFUSED or name.startswith(_REFUSED_PREFIXES):
            msg = f"{VARIABLE} holds {name}, which Spark or another setting sets, or which would break a guarantee (docs/inside.md says why); leave it out"
            raise StreamgaugeError(msg)
        options[name] = value
    return options


def checked_options(text: str) -> str:
    """`text`, if `client_options` accepts it. Raises as it does."""
    client_options(text)
    return text
