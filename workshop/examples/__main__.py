"""Runs examples by name, or all of them, on one Spark session: `python -m workshop.examples json_tuple`."""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings
from pipeline.spark.session import running_session
from workshop.examples import aggregates, formats, functions, kafka, nested, streams

Example = Callable[[SparkSession, Path], DataFrame | None]
EXAMPLES: dict[str, Example] = {
    example.__name__: example
    for example in (
        functions.json_tuple,
        functions.get_json_object,
        functions.regexp_extract,
        functions.from_csv,
        functions.get_item,
        functions.maps,
        functions.arrays,
        functions.explode,
        functions.deserializer,
        nested.dot,
        nested.star,
        nested.struct,
        nested.struct_star,
        nested.explode_map,
        nested.array_field,
        nested.from_json,
        nested.to_json,
        nested.json_part,
        aggregates.collect,
        aggregates.pandas_udaf,
        formats.orc,
        formats.csv,
        formats.avro,
        formats.xml,
        formats.text,
        formats.python_data_source,
        streams.memory_sink,
        streams.console_sink,
        streams.foreach,
        streams.jdbc,
        streams.running_aggregation,
        streams.sliding_window,
        streams.sql_stream,
        streams.stream_stream_join,
        streams.logs,
        streams.cloudtrail,
    )
}
ON_KAFKA: dict[str, Example] = {
    example.__name__: example for example in (kafka.kafka_batch, kafka.kafka_assign, kafka.kafka_subscribe_pattern)
}
"""They need a running Kafka, so only their names run them."""


def main(names: list[str]) -> None:
    """Prints each example's name and rows. Raises StreamgaugeError for an unknown name."""
    every = EXAMPLES | ON_KAFKA
    if unknown := [name for name in names if name not in every]:
        msg = f"no example {', '.join(unknown)}; there are {', '.join(every)}"
        raise StreamgaugeError(msg)
    with running_session(Settings.from_environment()) as spark, tempfile.TemporaryDirectory() as folder:
        for name in names or EXAMPLES:
            print(f"{name}:", flush=True)  # noqa: T201 - what this is for
            own = Path(folder, name)
            own.mkdir()
            if (rows := every[name](spark, own)) is not None:
                rows.show(truncate=False)
            sys.stdout.flush()


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except StreamgaugeError as error:
        sys.exit(f"error: {error}")
