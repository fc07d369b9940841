"""What a kill would leave is taken and restored: files, and the records of topics."""

import os

import psutil
from crash_points.images import Images
from crash_points.watched import End, Torn, Unsynchronized
from plain import folded, read_topic, write_counts, write_topic


def test_files_and_topics_are_again_as_they_were(fresh):
    write_counts(fresh, {1: 1})
    write_topic(fresh, "dead-letters", [b"first"], key=b"key")
    (fresh.home / "logs").mkdir()
    (fresh.home / "plan").write_text("one batch")
    (fresh.home / "query.driver").write_text(str(os.getpid()))
    before = folded(fresh, "nest-camera-stats")
    with Images(fresh, ["logs"], ["nest-logs"]) as images:
        images.take(None, [])
        write_counts(fresh, {1: 2, 2: 1})
        write_topic(fresh, "dead-letters", [b"second"])
        write_topic(fresh, "nest-logs", [b"an event"])
        (fresh.home / "plan").write_text("two batches")
        images.take(Torn(fresh.home / "plan", 4, b"of"), [Unsynchronized(fresh.home / "plan", 3)])
        for name in ("logs/log", "later"):
            (fresh.home / name).write_text("...")
        assert len({images.content(0, End.KILL), *(images.content(1, end) for end in End)}) == 4
        for _ in range(2):
            images.restore(1, End.POWER)
            assert (fresh.home / "plan").read_text() == "two"
            images.restore(1, End.TORN)
            assert (fresh.home / "plan").read_text() == "two oftches"
            assert len(folded(fresh, "nest-camera-stats")) == 2
            images.restore(0, End.KILL)
            assert folded(fresh, "nest-camera-stats") == before
            assert [(record.key(), record.value()) for record in read_topic(fresh, "dead-letters")] == [(b"key", b"first")]
            assert (fresh.home / "plan").read_text() == "one batch"
            assert sorted(path.name for path in fresh.home.iterdir()) == ["logs", "plan", "query.driver"]
            assert not psutil.pid_exists(int((fresh.home / "query.driver").read_text()))
            assert [record.value() for record in read_topic(fresh, "nest-logs")] == [b"an event"]
