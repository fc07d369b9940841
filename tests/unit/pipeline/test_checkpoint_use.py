"""Which process uses a checkpoint."""

import shutil
import subprocess

from contract.settings import Settings
from pipeline.checkpoint.use import held, is_locked
from pipeline.domains.taxi import queries


def test_a_checkpoint_is_free_when_its_process_has_ended_although_the_spark_driver_lives_on(tmp_path):
    settings = Settings(home=tmp_path)
    place = queries(settings)[0].checkpoint_name.place(settings)
    assert not is_locked(place), "it was never used"
    (tmp_path / "java").symlink_to(shutil.which("cat"))
    with subprocess.Popen([tmp_path / "java"], stdin=subprocess.PIPE) as driver:
        with held(place, driver.pid):
            assert is_locked(place)
            note = place.note(".driver").read_text()
        place.note(".driver").write_text(note)  # as after a kill
        assert place.driver is not None
        assert not is_locked(place)
