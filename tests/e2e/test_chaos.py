"""Two short rounds of chaos with a fixed seed, by the command that a person runs, in an environment that names a production of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


@pytest.mark.long
def test_two_rounds_of_chaos_leave_nothing_lost_doubled_or_wrong(tmp_path):
    production = {
        "LAKE_URI": str(tmp_path / "production"),
        "CHECKPOINT_URI": "s3a://production/checkpoints",
        "SPARK_MASTER": "spark://127.0.0.1:1",
        "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",
        "SCHEMA_REGISTRY_URL": "http://127.0.0.1:1",
        "STREAMGAUGE_NEST_SOURCE": f"files:{tmp_path / 'landing'}",
    }
    home = tmp_path / "chaos"
    command = [sys.executable, "-m", "chaos", "--rounds", "2", "--seed", "7", "--seconds", "20", "--home", str(home)]
    surroundings = {**os.environ, **production, "PYTHONPATH": str(TESTS)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=1100, check=False, env=surroundings)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n(the logs are under {home})"
    assert done.stdout.splitlines()[-1] == "2 of 2 rounds right"
    for fault in ("kill -9 of the pipeline", "kill -9 of Kafka", "the registry stops", "the pipeline freezes", "the producers pause"):
        assert done.stdout.count(fault) >= 2, done.stdout
    assert not (tmp_path / "production").exists(), "the simulated rows went into the lake of the environment"
