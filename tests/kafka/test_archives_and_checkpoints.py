"""An archive and its checkpoint that do not belong together: Spark alone would skip batches of the one, or write rows of the other twice."""

import shutil
from dataclasses import replace

import pytest
from plain import START, one_camera, write_topic
from running import shared_spark, streamgauge, succeed
from verifying import run_once

from infrastructure.errors import StreamgaugeError
from pipeline.catalog import chosen
from pipeline.running.runner import Runner


@pytest.fixture(params=["nest-archive", pytest.param("nest-archive-delta", marks=pytest.mark.delta)])
def archive(request, fresh):
    """A query with an archive, and nothing in it yet."""
    return Archived(request.param, replace(fresh, max_offsets_per_trigger=10))


class Archived:
    """An archive, and what a test does to it."""

    def __init__(self, name, settings):
        self.name, self.settings = name, settings
        (self.query,) = (query for query in chosen([name], settings) if query.name == name)
        self.checkpoint = self.query.checkpoint_name.folder(settings)
        self.table = self.query.sink.folder(settings)

    def send(self, count):
        write_topic(self.settings, "nest-logs", [one_camera("cam-1", START)] * count, partitions=1)

    def run(self, **changes):
        run_once(self.settings, self.name, **changes)

    def rows(self):
        """Partition and offset of each row, in order."""
        read = shared_spark().read.format("delta" if self.name.endswith("delta") else "parquet").load(str(self.table))
        return sorted((row.partition, row.offset) for row in read.select("partition", "offset").collect())

    def copied(self, *folders):
        for folder in folders:
            shutil.copytree(folder, f"{folder}.copy")

    def restore(self, *folders):
        for folder in folders:
            shutil.rmtree(folder)
            shutil.move(f"{folder}.copy", folder)


def each_once(count):
    return [(0, offset) for offset in range(count)]


def refused(archive, in_sink, in_checkpoint):
    return pytest.raises(
        StreamgaugeError,
        match=f"lake/.* {in_sink} and the checkpoint of {archive.name} {in_checkpoint}, so rows would be lost or doubled: .*"
        rf"\(`streamgauge reset {archive.name}`\)$",
    )


def test_a_restored_checkpoint_is_refused_unless_its_table_is_restored_too(archive):
    archive.send(20)
    archive.run()
    archive.copied(archive.checkpoint, archive.table)
    archive.send(20)
    archive.run()
    archive.restore(archive.checkpoint)
    archive.send(60)
    with refused(archive, "ends with batch 3", "ends with batch 1"):
        archive.run(max_offsets_per_trigger=1000)
    assert archive.rows() == each_once(40), "a query that is refused writes nothing"
    archive.restore(archive.table)
    archive.run()
    assert archive.rows() == each_once(100)


def test_a_restored_table_is_refused(archive):
    archive.send(20)
    archive.run()
    archive.copied(archive.table)
    archive.send(20)
    archive.run()
    archive.restore(archive.table)
    with refused(archive, "ends with batch 1", "ends with batch 3"):
        archive.run()


def test_a_new_checkpoint_beside_an_old_table_is_refused_until_the_table_is_moved_away(archive):
    archive.send(20)
    archive.run()
    shutil.rmtree(archive.checkpoint)
    with refused(archive, "ends with batch 1", "has no batch"):
        archive.run()
    archive.table.rename(f"{archive.table}_old")
    archive.run()
    assert archive.rows() == each_once(20)


def test_a_raised_version_is_refused(archive):
    archive.send(20)
    archive.run()
    with refused(archive, "ends with batch 1", "has no batch"):
        Runner(shared_spark(), archive.settings, once=True).run([replace(archive.query, version=2)])


def test_a_deleted_table_is_refused(archive):
    archive.send(20)
    archive.run()
    shutil.rmtree(archive.table)
    with refused(archive, "has no batch", "ends with batch 1"):
        archive.run()


def test_after_a_reset_that_was_interrupted_the_query_starts_only_when_it_is_complete(archive, monkeypatch):
    archive.send(20)
    archive.run()
    with monkeypatch.context() as patched:
        patched.setattr("pipeline.running.reset.remove", lambda path: (_ for _ in ()).throw(StreamgaugeError(f"could not delete {path}")))
        assert "could not delete" in streamgauge("reset", archive.name, "--yes", settings=archive.settings).stderr
    assert not archive.table.exists(), "the table is deleted before the checkpoint"
    assert archive.checkpoint.exists()
    with pytest.raises(StreamgaugeError, match=rf"a reset of {archive.name} was interrupted.* `streamgauge reset {archive.name}`"):
        archive.run()
    succeed("reset", archive.name, "--yes", settings=archive.settings)
    archive.run()
    assert archive.rows() == each_once(20)
