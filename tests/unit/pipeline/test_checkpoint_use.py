"""Which process uses a checkpoint."""

import shutil
import subprocess

from contract.settings import Settings
from pipeline.checkpoint.use import CheckpointUse
from pipeline.domains.taxi import queries


def test_a_checkpoint_is_free_when_its_process_has_ended_although_the_spark_driver_lives_on(tmp_path):
    settings = Settings(home=tmp_path)
    use = CheckpointUse.of(queries(settings)[0], settings)
    assert not use.is_locked, "it was never used"
    (tmp_path / "java").symlink_to(shutil.which("cat"))
    with subprocess.Popen([tmp_path / "java"], stdin=subprocess.PIPE) as driver:
        lock = use.lock(driver.pid)
        assert use.is_locked
        lock.release()  # as a killed process does: its note of the driver stays
        assert use.place.driver is not None
        assert not use.is_locked
