"""`streamgauge state`, as far as it comes without Spark: what it cannot read, it says at once and in one line."""

import pytest
from running import one_line_error, streamgauge

from infrastructure.settings import Settings

STATS = "nest-camera-stats"


@pytest.fixture
def settings(tmp_path):
    settings = Settings(home=tmp_path, real_time="off")
    for batch in range(4, 8):
        file = settings.checkpoints / f"{STATS}-v1-update" / "commits" / str(batch)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    (settings.checkpoints / f"{STATS}-v1-update" / "state" / "0").mkdir(parents=True)
    (settings.checkpoints / "taxi-borough-stats-v2-complete" / "commits").mkdir(parents=True)
    (settings.checkpoints / "nest-archive-v1-append" / "commits").mkdir(parents=True)
    (settings.checkpoints / "nest-archive-v1-append" / "commits" / "0").touch()
    return settings


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (("nest-stats",), ("no query nest-stats", STATS)),
        (("nest-archive",), ("nest-archive keeps no state", "each record by itself")),
        (("wikimedia-wiki-stats",), ("no state of wikimedia-wiki-stats-v1-update", "streamgauge run wikimedia-wiki-stats")),
        (("taxi-borough-stats",), ("no state of taxi-borough-stats-v2-update", "it has not finished a batch")),
        (("gone-v3-append",), ("no state of gone-v3-append")),
        ((STATS, "--batch", "3"), ("after batch 3", "batches 4 to 7 can be read")),
        ((STATS, "--batch", "8"), ("after batch 8", "batches 4 to 7 can be read")),
        ((STATS, "--changes", "2", "5"), ("after batch 2", "batches 4 to 7 can be read")),
        ((STATS, "--changes", "6", "5"), ("FIRST not after LAST",)),
        ((STATS, "--changes", "5", "6", "--batch", "6"), ("cannot be used with --batch or --timers",)),
        ((STATS, "--changes", "5"), ("--changes", "2 arguments")),
    ],
)
def test_what_cannot_be_read_gets_one_clear_line(settings, arguments, facts):
    line = one_line_error(streamgauge("state", *arguments, settings=settings, without_spark=True))
    assert [fact for fact in facts if fact not in line] == [], line
    assert not (settings.logs / "spark.log").exists()
