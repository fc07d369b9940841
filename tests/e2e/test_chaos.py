"""Two short rounds of chaos with a fixed seed, by the command that a person runs."""

from running import streamgauge


def test_two_rounds_of_chaos_leave_nothing_lost_doubled_or_wrong(tmp_path, settings):
    done = streamgauge(
        "chaos", "--rounds", "2", "--seed", "7", "--seconds", "20", settings=settings, timeout=880, STREAMGAUGE_HOME=str(tmp_path)
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n(the logs are under {tmp_path}/chaos)"
    assert done.stdout.splitlines()[-1] == "2 of 2 rounds right"
    for blow in ("kill -9 of the pipeline", "kill -9 of Kafka", "the registry stops", "the pipeline freezes", "the producers pause"):
        assert done.stdout.count(blow) >= 2, done.stdout
