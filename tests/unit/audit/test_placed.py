"""The checkpoint that a result is compared with, when its query has changed its mode."""

import json
from contextlib import closing

import pytest

from audit.catalog import audited, placed, places_in
from audit.continuous.loop import Audit
from contract.checkpoints.names import CheckpointName, CheckpointPlace
from infrastructure.settings import Settings


@pytest.fixture
def settings(tmp_path):
    return Settings(home=tmp_path)


def has_run(settings, mode, begun_ms=None, version=1):
    """A checkpoint with a batch that began then; without a moment, it has none."""
    offsets = CheckpointName("nest-camera-stats", version, mode).folder(settings) / "offsets"
    offsets.mkdir(parents=True, exist_ok=True)
    if begun_ms is not None:
        (offsets / "0").write_text(f"v1\n{json.dumps({'batchWatermarkMs': 0, 'batchTimestampMs': begun_ms})}\n-")


def compared(settings):
    (stats,) = (one for one in audited(settings) if one.query == "nest-camera-stats" and not hasattr(one, "table"))
    result, place = placed(stats, places_in(settings), settings)
    assert result.mode == (place.name.mode if place.name.mode != "real-time" else "update")
    return place.name.mode


@pytest.mark.parametrize("other", ["real-time", "append", "complete"])
@pytest.mark.parametrize(("own_ms", "other_ms"), [(1000, 2000), (2000, 1000)])
def test_it_is_that_of_the_newest_batch(settings, other, own_ms, other_ms):
    has_run(settings, "update", own_ms)
    has_run(settings, other, other_ms)
    assert compared(settings) == (other if other_ms > own_ms else "update")


@pytest.mark.parametrize(("old_ms", "new_ms", "version"), [(1000, 2000, 2), (2000, 1000, 1)])
def test_after_an_upgrade_or_a_downgrade_it_is_that_of_the_newest_batch(settings, old_ms, new_ms, version):
    has_run(settings, "update", old_ms, version=1)
    has_run(settings, "update", new_ms, version=2)
    (stats,) = (one for one in audited(settings) if one.query == "nest-camera-stats" and not hasattr(one, "table"))
    _, place = placed(stats, places_in(settings), settings)
    assert place.name.version == version


def test_it_is_a_damaged_one_whose_check_names_the_damage(settings):
    has_run(settings, "update", "no time")
    has_run(settings, "complete", 2000)
    assert compared(settings) == "update"


def test_the_continuous_audit_goes_over_to_that_of_the_newest_batch(settings):
    has_run(settings, "update", 1000)
    has_run(settings, "complete", 2000)
    with closing(Audit(settings, print)) as audit:

        def mode():
            audit._find_results()
            return next(result.place.name.mode for result in audit._results.values() if result.query == "nest-camera-stats")

        assert mode() == "complete"
        has_run(settings, "update", 3000)
        assert mode() == "update"


def test_it_is_that_in_use_whatever_has_run_before(settings, monkeypatch):
    has_run(settings, "update", 1000)
    has_run(settings, "real-time")
    monkeypatch.setattr(CheckpointPlace, "driver", property(lambda place: place.name.mode == "update" or None))
    assert compared(settings) == "update"


@pytest.mark.parametrize(("mode", "expected"), [("10 seconds", "real-time"), ("off", "update")])
def test_before_the_first_checkpoint_of_real_time_mode_the_setting_decides(tmp_path, mode, expected):
    settings = Settings(home=tmp_path, real_time=mode)
    has_run(settings, "update", 1000)
    has_run(settings, "real-time")
    assert compared(settings) == expected
