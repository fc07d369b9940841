"""The thread that publishes the states of the queries."""

from running import eventually

from infrastructure.settings import Settings
from pipeline.monitoring.progress import ProgressToKafka


def test_an_error_is_said_once_and_does_not_end_the_thread(tmp_path, monkeypatch):
    monkeypatch.setattr("pipeline.monitoring.progress.ENDS_SECONDS", 0.01)
    looks, said = [], []

    def look(*_):
        looks.append(1)
        raise KeyError(1)

    listener = ProgressToKafka(Settings(home=tmp_path, kafka_port=9), said.append, look=look)
    try:
        eventually(lambda: len(looks) > 2, "the thread to go on")
    finally:
        listener.close()
    assert said == ["warning: the queries continue, but what is known of them could not be published or watched: KeyError: 1"]
