"""Follows the events of queries, for tools that receive each of them."""

from collections.abc import Callable, Mapping
from functools import partial

from confluent_kafka import Message, TopicPartition

from contract.topics import STREAMING_METRICS, BatchEvent, QueryEvent
from infrastructure.kafka.cluster import KafkaCluster
from infrastructure.kafka.follow import Warnings, follow
from infrastructure.kafka.result_table import TableReader
from infrastructure.process.stop_signals import StopRequest
from infrastructure.rows import Count, Row, Time, checked, decode_json


class Started(QueryEvent):
    """A run of a query. run_id: Spark's, a UUID."""

    run_id: str


class Batch(BatchEvent):
    """A micro-batch, with its run and number in Spark."""

    run_id: str
    batch_id: Count
    batch_started_at: Time
    input_rows: Count


class Ended(QueryEvent):
    """The end of a run. error: None if it was stopped."""

    run_id: str
    error: str | None
    error_detail: str | None


_FIELDS: Mapping[object, type[QueryEvent]] = {"started": Started, "progress": Batch, "terminated": Ended}


class NewRecords(TableReader):
    """Gives `take` each new record of a topic. next_offsets: where to continue, by partition, if it was opened before."""

    def __init__(self, kafka: KafkaCluster, topic: str, take: Callable[[Message], None], next_offsets: dict[int, int]) -> None:
        super().__init__(kafka, topic)
        self._take_record, self._begin = take, next_offsets

    def _starts(self, offsets: Mapping[int, tuple[int, int]]) -> list[TopicPartition]:
        is_first = not self._begin
        for number, (first, end) in offsets.items():
            begin = self._begin.get(number, end if is_first else first)
            self._begin[number] = max(begin, first) if begin <= end else first  # beyond the end, it is of a topic that was deleted
        return [TopicPartition(self.topic, number, self._begin[number]) for number in offsets]

    def _apply(self, message: Message) -> None:
        self._take_record(message)
        self._begin[message.partition() or 0] = (message.offset() or 0) + 1


def follow_events(kafka: KafkaCluster, take: Callable[[Row], None], stop: StopRequest, warn: Callable[[str], None]) -> None:
    """Gives `take` each new Started, Batch and Ended until the stop is requested.

    When Kafka does not answer, `warn` gets a line, and reading continues where it was as soon as Kafka does.
    """
    next_offsets: dict[int, int] = {}
    warnings = Warnings(warn)

    def take_record(message: Message) -> None:
        if stop.is_set():
            return
        try:
            row = decode_json(message.value() or b"")
            event = checked(_FIELDS[row.get("event")], row)
        except (ValueError, KeyError, TypeError):  # another event, or a record of another program
            return
        take(event)

    reader = partial(NewRecords, kafka, STREAMING_METRICS.name, take_record, next_offsets)
    follow([lambda: reader().opened()], lambda _: warnings.tell(()), stop, warnings.add)
