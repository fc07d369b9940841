"""Four rounds of chaos with a fixed seed, by the command that a person runs, in an environment that names a production of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


@pytest.mark.long
def test_four_rounds_of_chaos_leave_nothing_lost_doubled_or_wrong(tmp_path):
    production = {
        "LAKE_URI": str(tmp_path / "production"),
        "CHECKPOINT_URI": "s3a://production/checkpoints",
        "SPARK_MASTER": "spark://127.0.0.1:1",
        "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",
        "SCHEMA_REGISTRY_URL": "http://127.0.0.1:1",
        "STREAMGAUGE_NEST_SOURCE": f"files:{tmp_path / 'landing'}",
    }
    home = tmp_path / "chaos"
    command = [sys.executable, "-m", "chaos", "--rounds", "4", "--seed", "7", "--home", str(home)]
    surroundings = {**os.environ, **production, "PYTHONPATH": str(TESTS)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=1100, check=False, env=surroundings)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n(the data and logs are under {home})"
    assert done.stdout.splitlines()[-1] == "4 of 4 rounds right"
    for mode in ("real-time mode", "micro-batches"):
        assert mode in done.stdout
    assert not (tmp_path / "production").exists(), "the simulated rows went into the lake of the environment"
