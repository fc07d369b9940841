"""The command records."""

import contextlib
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contract.domains import name_in_kafka
from infrastructure.errors import StreamgaugeError
from infrastructure.output.format_option import FormatOption
from infrastructure.output.terminal import err
from infrastructure.settings import Settings

if TYPE_CHECKING:  # importing Kafka's client takes a while
    from confluent_kafka import Message

    from streamgauge.records.decoding import Decoded, Decoder
    from streamgauge.records.reader import TopicRecords


def records(
    topic: Annotated[str, typer.Argument(help="any topic")],
    start: Annotated[
        str,
        typer.Option(
            "--from", metavar="WHERE", help="beginning, end, an offset, a time in ISO 8601, or -10 for the last 10 of each partition"
        ),
    ] = "beginning",
    limit: Annotated[int | None, typer.Option(min=1, help="how many records to print at most")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="continue with records as they arrive; Ctrl-C ends it")] = False,  # noqa: FBT002 - an option
    partition: Annotated[
        list[int] | None, typer.Option(help="print only records of this partition; can be repeated", show_default=False)
    ] = None,
    key: Annotated[
        str | None, typer.Option(metavar="TEXT", help="print only records with the key TEXT, or with TEXT in a field of the key")
    ] = None,
    schema: Annotated[bool, typer.Option("--schema", help="print the schema that Spark gives the values, which takes seconds")] = False,  # noqa: FBT002
    output_format: FormatOption = "table",
) -> None:
    """Print the records of a topic, decoded. In order of time: offset, time, key, headers, and the value in JSON, text or hex."""
    from streamgauge.records.decoding import Decoder
    from streamgauge.records.reader import TopicRecords
    from streamgauge.records.start import Start

    if follow and schema:
        msg = "--schema reads the records that are there and ends; leave out --follow"
        raise StreamgaugeError(msg)
    if start == "end" and not follow:
        msg = "--from end begins after the last record; add --follow, or use --from -10 for the last 10 records of each partition"
        raise StreamgaugeError(msg)
    settings, topic = Settings.from_environment(), name_in_kafka(topic)
    decoder = Decoder(settings.registry)
    with TopicRecords(settings.kafka, topic, Start.of(start), partition or []).opened() as reader:
        chosen = islice(_chosen(reader, decoder, key, follow=follow), limit)
        if schema:
            _print_schema(chosen, decoder, settings, output_format)
        elif follow:
            # Ending it is not a failure, so it sets no exit code.
            with contextlib.suppress(KeyboardInterrupt):
                _print(chosen, decoder, output_format)
        elif not _print(chosen, decoder, output_format):
            err.print(f"no such record; topic {topic} has {reader.extent}")


def _chosen(reader: "TopicRecords", decoder: "Decoder", key: str | None, *, follow: bool) -> Iterator["tuple[Message, Decoded]"]:
    for message in chain(reader.present(), reader.arriving() if follow else ()):
        decoded_key = decoder.decoded(message.key())
        if key is None or decoded_key.has(key):
            yield message, decoded_key


def _print(chosen: Iterable["tuple[Message, Decoded]"], decoder: "Decoder", output_format: str) -> int:
    """Prints each record as it comes. Returns how many there were."""
    from streamgauge.records.showing import Shown

    count = 0
    for message, key in chosen:
        shown = Shown(message, key, decoder)
        sys.stdout.write((shown.as_json() if output_format == "json" else shown.as_text()) + "\n")
        sys.stdout.flush()
        count += 1
    return count


def _print_schema(chosen: Iterable["tuple[Message, Decoded]"], decoder: "Decoder", settings: Settings, output_format: str) -> None:
    from infrastructure.storage.temporary import temporary_folder
    from pipeline.spark.session import running_session
    from streamgauge.records.schemas import Schemas

    on_this_machine = replace(settings, spark_master="local[*]")
    with running_session(on_this_machine) as spark, tempfile.TemporaryDirectory(dir=temporary_folder(settings.home)) as folder:
        schemas = Schemas((message.value() for message, _ in chosen), decoder, spark, Path(folder))
        sys.stdout.write((schemas.as_json() if output_format == "json" else schemas.as_text()) + "\n")
