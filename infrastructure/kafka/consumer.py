"""A Kafka consumer that needs no right for a consumer group."""

import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message


class GrouplessConsumer(Consumer):
    """A consumer whose partitions are assigned, and which commits nothing. So it does not matter if Kafka denies it its group.

    librdkafka looks for the group's coordinator nevertheless, and reports the denial in place of a record. That report is left out.
    """

    def poll(self, timeout: float = -1) -> Message | None:
        """The next record or error. None if there is none within `timeout`, in seconds; a negative one has no limit."""
        deadline = time.monotonic() + timeout
        while (message := super().poll(timeout)) is not None and is_about_group(message):
            timeout = max(0.0, deadline - time.monotonic()) if timeout >= 0 else timeout
        return message

    def consume(self, *arguments: Any, **options: Any) -> list[Message]:  # noqa: ANN401 - as the base class has them
        """The next records and errors. They can be fewer than asked for."""
        return [message for message in super().consume(*arguments, **options) if not is_about_group(message)]


def is_about_group(message: Message) -> bool:
    """Whether the message is not a record, but the report that Kafka denies a group."""
    error = message.error()
    return error is not None and error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
