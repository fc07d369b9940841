"""What the failure of a query means to a person, by the text of Spark's exception: what was found, and what to do."""

from dataclasses import dataclass

from pipeline.checkpoint_use import CheckpointUse
from pipeline.measures import failure_of
from streamgauge.settings import Settings

# Spark 4.1's Kafka source fails so after it has run, and committed, a batch that an earlier run had planned and not finished: it
# reports how far it is behind offsets that it has not asked for yet (KafkaMicroBatchStream.metrics). Started again, it goes on.
AFTER_A_BATCH_RUN_AGAIN = (
    'Cannot invoke "scala.collection.IterableOps.map(scala.Function1)" because the return value of "scala.Option.get()" is null'
)

KAFKA_AWAY = ("org.apache.kafka.common.errors.TimeoutException", "org.apache.kafka.common.errors.DisconnectException")
DATA_LOSS = ("failOnDataLoss", "KAFKA_DATA_LOSS", "data may have been lost")
_TOPIC_GONE = ("UnknownTopicOrPartition", "UNKNOWN_TOPIC_OR_PARTITION", "does not host this topic-partition")
_OTHER_STATE = ("STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE", "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE", "STREAMING_STATEFUL_OPERATOR_NOT_MATCH")
_DAMAGED = ("Checksum error", "MALFORMED_LOG_FILE", "Malformed log file", "Incomplete log file")
_DISK_FULL = ("No space left on device", "Disk quota exceeded")


@dataclass(frozen=True)
class Diagnosis:
    """Why a query failed, in a line; `is_final`: starting it again is of no use, a person has to act first."""

    what: str
    is_final: bool = False


def diagnosis(text: str, checkpoint: CheckpointUse, settings: Settings) -> Diagnosis:
    """What the failure with Spark's `text` comes from."""
    if _has(text, DATA_LOSS):
        return Diagnosis(
            records_gone("records that it had not read yet are gone from Kafka: retention has cut them", checkpoint), is_final=True
        )
    if _has(text, _OTHER_STATE):
        what = (
            f"the query is another one than that which left its state in {checkpoint.folder}: raise its version in the code, "
            f"which counts anew beside the old, or delete what it has with `streamgauge reset {checkpoint.query}`"
        )
        return Diagnosis(what, is_final=True)
    if _has(text, _DAMAGED):
        what = (
            f"its checkpoint is damaged: bring {checkpoint.folder} back from a copy, or count anew (`streamgauge reset {checkpoint.query}`)"
        )
        return Diagnosis(f"{what}: {failure_of(text).error}")
    if _has(text, _DISK_FULL):
        return Diagnosis(f"no space is left under {settings.home.absolute()}; make some, nothing is lost meanwhile")
    if _has(text, _TOPIC_GONE):
        return Diagnosis("a topic that it reads or writes is gone from Kafka; `streamgauge up` creates what is missing")
    return Diagnosis(failure_of(text).error)


def records_gone(found: str, checkpoint: CheckpointUse) -> str:
    """What to say when records that a query had to read are no longer there. found: how that is known."""
    return (
        f"{found}. Two ways out: go on with what is left and accept the gap (STREAMGAUGE_FAIL_ON_DATA_LOSS=false), "
        f"or count anew from the earliest record that is there (`streamgauge reset {checkpoint.query}`)"
    )


def _has(text: str, signs: tuple[str, ...]) -> bool:
    return any(sign in text for sign in signs)
