"""The harness of tests of streams, where it needs no Spark."""

from dataclasses import dataclass

import pytest
import streaming
from pyspark.errors import StreamingQueryException
from streaming import Stream

from infrastructure.settings import Settings
from pipeline.domains import nest

CAMERA_STATS = nest.queries(Settings())[0]


@dataclass
class Failed:
    """A run that has ended with a failure."""

    text: str

    def exception(self):
        return StreamingQueryException(self.text)


@pytest.fixture
def starts(tmp_path, monkeypatch):
    """Runs a batch on a stream whose runs fail with a text; gives how often it was started, and the error."""

    def run(text):
        started = []
        monkeypatch.setattr(Stream, "_ended", lambda *_: started.append(text) or Failed(text))
        with pytest.raises((TimeoutError, StreamingQueryException)) as error:
            Stream(None, CAMERA_STATS, tmp_path / "stream").run([b"{}"])
        return len(started), error

    return run


def test_a_machine_that_is_too_busy_for_python_processes_is_named_after_the_last_start(starts):
    count, error = starts("Python worker failed to connect back")
    assert count == streaming.STARTS
    assert error.type is TimeoutError
    assert "this machine is too busy" in str(error.value)


def test_any_other_failure_ends_the_first_start(starts):
    count, error = starts("boom")
    assert (count, error.type) == (1, StreamingQueryException)
