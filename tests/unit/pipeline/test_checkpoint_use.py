"""Which process uses a checkpoint."""

import shutil
import subprocess
from dataclasses import replace

import pytest
from messages import refused

from infrastructure.errors import StreamgaugeError
from infrastructure.process.locks import InUse
from infrastructure.settings import Settings
from pipeline.checkpoint import use
from pipeline.checkpoint.use import check_parameters, check_source, locked
from pipeline.domains.taxi import queries


def test_a_checkpoint_is_free_when_its_process_has_ended_although_the_spark_driver_lives_on(tmp_path, monkeypatch):
    settings = Settings(home=tmp_path)
    place = queries(settings)[0].checkpoint_name.place(settings)
    (tmp_path / "java").symlink_to(shutil.which("cat"))
    with subprocess.Popen([tmp_path / "java"], stdin=subprocess.PIPE) as driver:
        with locked(place, driver.pid):
            with pytest.raises(InUse), locked(place):
                pass
            note = place.note(".driver").read_text()
        place.note(".driver").write_text(note)  # as after a kill
        monkeypatch.setattr(use, "PREVIOUS_DRIVER_SECONDS", 0.1)
        with pytest.raises(StreamgaugeError, match="is still running") as found, locked(place):
            pass
        assert not isinstance(found.value, InUse)


@pytest.fixture
def settings(tmp_path):
    return Settings(home=tmp_path)


@pytest.fixture
def place(settings):
    """A checkpoint of a query that has read topic nyc-taxi."""
    place = queries(settings)[0].checkpoint_name.place(settings)
    (place.folder / "offsets").mkdir(parents=True)
    (place.folder / "offsets" / "0").write_text("v1\n{}\n{}")
    check_source(place, {"nyc-taxi": "id"}, settings)
    return place


def test_a_topic_with_another_prefix_is_another_source(place, settings):
    facts = (
        "has read topic nyc-taxi and is now to read topic team1.nyc-taxi",
        "set STREAMGAUGE_TOPIC_PREFIX as it was",
        "`streamgauge reset ",
    )
    with refused(*facts):
        check_source(place, {"team1.nyc-taxi": "id"}, settings)


def test_a_state_of_other_windows_is_refused_and_a_checkpoint_without_a_batch_has_none(place, settings):
    fifteen, hour = (
        {query.name: query for query in queries(replace(settings, **window))}["taxi-borough-stats"].parameters
        for window in ({"taxi_window": "15 minutes"}, {})
    )
    assert hour == {"window": "1 hour", "slide": "1 hour"}
    check_parameters(place, hour)
    check_parameters(place, hour)
    check_parameters(place, {})
    facts = (
        f"query {place.name.query} has counted with window '1 hour' and slide '1 hour' and is now to count with window '15 minutes'",
        "streamgauge reset ",
    )
    with refused(*facts):
        check_parameters(place, fifteen)
    (place.folder / "offsets" / "0").unlink()
    check_parameters(place, fifteen)


def test_the_source_that_a_checkpoint_has_already_is_not_written_again_so_that_a_full_disk_does_not_hinder_a_restart(place, settings):
    written = place.sidecar(".topics").stat().st_ino
    check_source(place, {"nyc-taxi": "id"}, settings)
    assert place.sidecar(".topics").stat().st_ino == written


@pytest.mark.parametrize("text", ["{", "[1]", "1"])
def test_a_damaged_note_on_the_source_is_one_line(place, settings, text):
    place.sidecar(".topics").write_text(text)
    with refused(str(place.sidecar(".topics")), "is damaged"):
        check_source(place, {"nyc-taxi": "id"}, settings)
