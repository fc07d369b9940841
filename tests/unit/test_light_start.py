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
    "pydantic_core",
    "pyarrow",
    "pandas",
    "pyspark",
    "sqlalchemy",
    "streamlit",
    "duckdb",
}


OF_SOME_QUERIES = {"sqlalchemy", "confluent_kafka.schema_registry"}


def loaded_by(modules):
    code = f"import sys, {modules}; print(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize("module", ["streamgauge.cli", "producers.nest.simulation"])
def test_it_loads_no_heavy_module(module):
    assert loaded_by(module) & HEAVY == set()


def test_a_query_loads_no_database_and_no_registry_that_it_may_not_need():
    assert loaded_by("pipeline.catalog, pipeline.running.runner") & OF_SOME_QUERIES == set()


def test_what_reads_rows_loads_the_core_of_pydantic_alone():
    loaded = loaded_by(
        "infrastructure.rows, contract.topics; infrastructure.rows.checked(infrastructure.rows.Window, {'start': '2026-01-01T00Z', 'end': '2026-01-02T00Z'})"
    )
    assert {"pydantic_core", "pydantic"} & loaded == {"pydantic_core"}
