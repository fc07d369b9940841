"""What a command loads before it knows what to do: every command pays for that."""

import subprocess
import sys

import pytest

HEAVY = {
    "psutil",
    "pygments",
    "confluent_kafka",
    "requests",
    "httpx2",
    "urllib.request",
    "pydantic",
    "pyarrow",
    "pandas",
    "pyspark",
    "sqlalchemy",
    "streamlit",
}


@pytest.mark.parametrize("module", ["streamgauge.cli", "producers.nest.simulation"])
def test_it_loads_no_heavy_module(module):
    code = f"import sys, {module}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert set(loaded) & HEAVY == set()
