"""The journal of batches against checkpoints as Spark writes them."""

import json

import pytest
from messages import refused

from contract.checkpoints.contents import Batch, Checkpoint, batch_of, known_batches
from contract.checkpoints.names import CheckpointName, CheckpointPlace
from infrastructure.settings import Settings
from infrastructure.storage.paths import StoreUnavailable
from pipeline.checkpoint.journal import BatchJournal


class SparkCheckpoint:
    """Writes what Spark writes for a query on `nest-logs`; one that has `branches` names its offsets so many times."""

    def __init__(self, place: CheckpointPlace, query_id: str = "one", branches: int = 3):
        self.place, self.folder, self.branches = place, place.folder, branches
        for name in ("offsets", "commits"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "metadata").write_text(json.dumps({"id": query_id}))

    def plan(self, number, *ends, watermark_ms=0):
        offsets = json.dumps({"nest-logs": {str(partition): end for partition, end in enumerate(ends)}})
        metadata = json.dumps({"batchWatermarkMs": watermark_ms, "batchTimestampMs": 1, "conf": {}})
        (self.folder / "offsets" / f".{number}.crc").write_bytes(b"crc")
        (self.folder / "offsets" / str(number)).write_text("\n".join(["v1", metadata, *[offsets] * self.branches]))

    def purge(self, *numbers):
        for number in numbers:
            (self.folder / "offsets" / str(number)).unlink()


@pytest.fixture
def checkpoint(tmp_path):
    return SparkCheckpoint(CheckpointName("nest-camera-stats", 1, "update").place(Settings(home=tmp_path)))


def batch(number, *ends, watermark_ms=0):
    return Batch(number, {("nest-logs", partition): end for partition, end in enumerate(ends)}, watermark_ms)


def follow(checkpoint, earliest=()):
    journal = BatchJournal(checkpoint.place)
    journal.open({("nest-logs", partition): offset for partition, offset in enumerate(earliest)})
    return journal


def test_a_batch_is_known_after_spark_has_forgotten_it(checkpoint):
    journal = follow(checkpoint)
    for number in range(5):
        checkpoint.plan(number, number * 10 + 10, 7, watermark_ms=number * 1000)
        journal.catch_up()
    checkpoint.purge(0, 1, 2)
    assert known_batches(checkpoint.place) == [batch(number, number * 10 + 10, 7, watermark_ms=number * 1000) for number in range(5)]


def test_what_is_not_in_the_journal_yet_is_read_from_spark(checkpoint):
    checkpoint.plan(0, 10)
    follow(checkpoint)
    checkpoint.plan(1, 20)
    assert known_batches(checkpoint.place) == [batch(0, 10), batch(1, 20)]


def test_without_a_journal_what_spark_still_has_is_known(checkpoint):
    checkpoint.plan(7, 10)
    assert known_batches(checkpoint.place) == [batch(7, 10)]


def test_a_journal_that_someone_has_edited_is_read_without_the_lines_that_are_no_batches(checkpoint):
    checkpoint.plan(8, 20)
    checkpoint.place.note(".journal").write_text(
        '{"query_id":"one"}\n{"batch":"x","watermark_ms":0,"ends":{}}\n{"batch":7,"watermark_ms":0,"ends":{"nest-logs":{"0":10}}}'
    )
    assert known_batches(checkpoint.place) == [batch(7, 10), batch(8, 20)]


@pytest.mark.parametrize("cut", range(1, 60))
def test_a_line_that_was_cut_off_by_a_kill_is_written_again(checkpoint, cut):
    checkpoint.plan(0, 10, watermark_ms=1)
    checkpoint.plan(1, 20, watermark_ms=2)
    path = follow(checkpoint).path
    path.write_bytes(path.read_bytes()[:-cut])
    assert known_batches(checkpoint.place)[-1] == batch(1, 20, watermark_ms=2)
    checkpoint.plan(2, 30, watermark_ms=3)
    follow(checkpoint)
    checkpoint.purge(0, 1, 2)
    assert known_batches(checkpoint.place) == [batch(0, 10, watermark_ms=1), batch(1, 20, watermark_ms=2), batch(2, 30, watermark_ms=3)]


def test_a_journal_is_of_one_checkpoint_only(checkpoint, tmp_path):
    checkpoint.plan(0, 10)
    checkpoint.plan(1, 20)
    follow(checkpoint)
    checkpoint.folder.rename(tmp_path / "away")
    anew = SparkCheckpoint(checkpoint.place, query_id="another")
    assert known_batches(anew.place) == []
    journal = follow(anew)
    anew.plan(0, 5)
    journal.catch_up()
    anew.purge(0)
    assert known_batches(anew.place) == [batch(0, 5)]


def test_a_journal_that_was_left_behind_by_a_deleted_checkpoint_is_begun_anew_by_the_first_batch(checkpoint):
    checkpoint.plan(0, 10)
    checkpoint.plan(1, 20)
    follow(checkpoint)
    checkpoint.purge(0, 1)
    (checkpoint.folder / "metadata").unlink()
    journal = follow(checkpoint)
    (checkpoint.folder / "metadata").write_text('{"id": "another"}')
    checkpoint.plan(0, 5)
    journal.catch_up()
    assert known_batches(checkpoint.place) == [batch(0, 5)]


def test_a_batch_that_was_planned_anew_takes_the_place_of_the_old_plan_and_of_all_after_it(checkpoint):
    for number, end in enumerate((10, 20, 30)):
        checkpoint.plan(number, end)
    follow(checkpoint)
    checkpoint.purge(2)
    checkpoint.plan(1, 15)
    follow(checkpoint)
    checkpoint.purge(0, 1)
    assert known_batches(checkpoint.place) == [batch(0, 10), batch(1, 15)]


def test_batches_below_what_the_source_still_has_are_forgotten_but_for_the_last(checkpoint):
    for number in range(10):
        checkpoint.plan(number, number * 10 + 10, number + 1, watermark_ms=number)
    follow(checkpoint)
    checkpoint.purge(*range(10))
    follow(checkpoint, earliest=(85, 7))
    assert [known.number for known in known_batches(checkpoint.place)] == [6, 7, 8, 9]


def test_a_journal_that_cannot_be_written_stops_nothing_and_goes_on_when_it_can(checkpoint):
    journal = follow(checkpoint)
    journal.path.unlink()
    journal.path.mkdir()
    checkpoint.plan(0, 10)
    journal.catch_up()
    journal.path.rmdir()
    journal.catch_up()
    checkpoint.purge(0)
    assert known_batches(checkpoint.place) == [batch(0, 10)]


def test_without_the_store_of_the_checkpoint_the_first_batch_is_written_with_the_next_one(checkpoint, monkeypatch):
    def unavailable(_):
        raise StoreUnavailable("away")  # noqa: EM101

    metadata = checkpoint.folder / "metadata"
    hidden = metadata.rename(metadata.with_name("hidden"))
    journal = follow(checkpoint)
    hidden.rename(metadata)
    for number in range(2):
        checkpoint.plan(number, number * 10 + 10)
    with monkeypatch.context() as away:
        away.setattr(Checkpoint, "query_id", property(unavailable))
        journal.add(batch(0, 10))
    journal.add(batch(1, 20))
    checkpoint.purge(0, 1)
    assert known_batches(checkpoint.place) == [batch(0, 10), batch(1, 20)]


@pytest.mark.usefixtures("soon_away")
def test_a_journal_is_written_while_no_kafka_answers(checkpoint, tmp_path):
    journal = BatchJournal.followed(checkpoint.place, Settings(home=tmp_path, kafka_bootstrap_servers="127.0.0.1:1"), [("nest-logs", 0)])
    journal.add(batch(0, 10))
    assert known_batches(checkpoint.place) == [batch(0, 10)]


def test_a_batch_that_spark_reports_is_known_though_its_plan_is_gone(checkpoint):
    journal = follow(checkpoint)
    for number in range(3):
        journal.add(batch(number, number + 10, watermark_ms=number))
    assert known_batches(checkpoint.place) == [batch(number, number + 10, watermark_ms=number) for number in range(3)]


def test_batches_that_were_not_reported_are_read_from_spark(checkpoint):
    journal = follow(checkpoint)
    for number in range(3):
        checkpoint.plan(number, number + 10)
    journal.add(batch(2, 12))
    checkpoint.purge(0, 1, 2)
    assert known_batches(checkpoint.place) == [batch(0, 10), batch(1, 11), batch(2, 12)]


@pytest.mark.parametrize("wrong", ["x", None, [], float("inf")])
def test_an_offset_or_a_watermark_that_is_no_number_is_named_as_damage(checkpoint, wrong):
    checkpoint.plan(0, wrong)
    (checkpoint.folder / "commits" / "0").write_text(f"v1\n{json.dumps({'nextBatchWatermarkMs': wrong})}")
    found = Checkpoint(checkpoint.folder)
    for read, file in ((found.batch, "offsets/0"), (found.watermark_after, "commits/0")):
        with refused(f"{file} is damaged"):
            read(0)


def test_a_plan_that_is_damaged_while_the_query_runs_stops_no_query(checkpoint):
    journal = follow(checkpoint)
    checkpoint.plan(0, 10)
    (checkpoint.folder / "offsets" / "0").write_text("v1")
    journal.add(batch(1, 20))
    checkpoint.plan(0, 10)
    checkpoint.plan(1, 20)
    journal.add(batch(2, 30))
    assert known_batches(checkpoint.place) == [batch(0, 10), batch(1, 20)]


def test_a_batch_that_is_reported_again_changes_nothing(checkpoint):
    checkpoint.plan(0, 10)
    checkpoint.plan(1, 20)
    journal = follow(checkpoint)
    written = journal.path.read_bytes()
    journal.add(batch(1, 20))
    assert journal.path.read_bytes() == written


def test_a_report_of_spark_is_the_batch_that_it_has_planned():
    reported = {
        "batchId": 7,
        "eventTime": {"watermark": "2026-01-01T00:00:00.123Z"},
        "sources": [{"endOffset": {"nest-logs": {"0": 10, "1": 4}}}, {"endOffset": None}, {"endOffset": {"taxi": {"0": 5}}}],
    }
    ends = {("nest-logs", 0): 10, ("nest-logs", 1): 4, ("taxi", 0): 5}
    assert batch_of(reported) == Batch(7, ends, watermark_ms=1_767_225_600_123)
    files = {"batchId": 0, "eventTime": {"watermark": "1970-01-01T00:00:00.000Z"}, "sources": [{"endOffset": {"logOffset": 3}}]}
    assert batch_of(files) == Batch(0, {("files", 0): 4}, watermark_ms=0)
