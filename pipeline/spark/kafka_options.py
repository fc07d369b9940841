"""The options of Kafka's clients in Spark, those that the user has set among them."""

from pyspark.sql import SparkSession

from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.client_options import VARIABLE, client_options
from infrastructure.settings import Settings


def kafka_options(settings: Settings) -> dict[str, str]:
    """The options common to reading from and writing to Kafka. They come last, after defaults, which the user may replace."""
    return {**settings.kafka.spark_options(), **{f"kafka.{name}": text for name, text in client_options(settings.kafka_options).items()}}


def check_kafka_options(spark: SparkSession, settings: Settings) -> None:
    """Raises StreamgaugeError for an option that neither consumers nor producers have, and for a value that they do not take.

    Kafka's clients themselves ignore options that they do not know.
    """
    options = client_options(settings.kafka_options)
    if not options:
        return
    clients = spark.sparkContext._jvm.org.apache.kafka.clients  # type: ignore[union-attr]
    definitions = [clients.consumer.ConsumerConfig.configDef(), clients.producer.ProducerConfig.configDef()]
    unknown = [name for name in options if not any(definition.names().contains(name) for definition in definitions)]
    if unknown:
        msg = f"{VARIABLE} holds {', '.join(unknown)}, which Kafka's consumers and producers do not have; correct the name"
        raise StreamgaugeError(msg)
    for definition in definitions:
        for option in definition.validate(options):
            if option.name() in options and option.errorMessages():
                msg = f"{VARIABLE}: {option.errorMessages()[0].rstrip('.')}; correct the value"
                raise StreamgaugeError(msg)
