"""Rounds of chaos with a fixed seed, by the command that a person runs, in an environment that names a production of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
SEED = 8
"""In its first round, Spark's JVM is killed and Kafka freezes."""


@pytest.mark.parametrize(
    ("rounds", "modes"), [(1, {"real-time mode"}), pytest.param(4, {"real-time mode", "micro-batches"}, marks=pytest.mark.long)]
)
def test_rounds_of_chaos_leave_nothing_lost_doubled_or_wrong(tmp_path, rounds, modes):
    production = {
        "LAKE_URI": str(tmp_path / "production"),
        "CHECKPOINT_URI": "s3a://production/checkpoints",
        "SPARK_MASTER": "spark://127.0.0.1:1",
        "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",
        "SCHEMA_REGISTRY_URL": "http://127.0.0.1:1",
        "STREAMGAUGE_NEST_SOURCE": f"files:{tmp_path / 'landing'}",
    }
    home = tmp_path / "chaos"
    command = [sys.executable, "-m", "chaos", "--rounds", str(rounds), "--seed", str(SEED), "--home", str(home)]
    surroundings = {**os.environ, **production, "PYTHONPATH": str(TESTS)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=1100, check=False, env=surroundings)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n(the data and logs are under {home})"
    assert done.stdout.splitlines()[-1] == f"{rounds} of {rounds} rounds right"
    assert {mode for mode in ("real-time mode", "micro-batches") if mode in done.stdout} == modes
    assert not (tmp_path / "production").exists(), "the simulated rows went into the lake of the environment"
