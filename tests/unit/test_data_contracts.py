"""The data contracts, by datacontract-cli, which reads the topics. Its dependencies exclude some of ours, so that uv gives it an environment."""

import json
import os
import subprocess

import orjson
import pytest
from avro import in_wire_format
from documents import ROOT
from foreign_rows import DECLARED, example
from mock_kafka import MockKafka
from schema_server import schemas_served

from infrastructure.rows import checked
from infrastructure.settings import Settings
from infrastructure.storage.data_files import data_file

IN_ENVIRONMENT = [ROOT / ".uv" / "bin" / "uv", "tool", "run", "--from", "datacontract-cli[kafka]==1.2.8"]
CHECK = """
import json, sys
from concurrent.futures import ThreadPoolExecutor
from datacontract.data_contract import DataContract
def found(file):
    contract = DataContract(data_contract_file=file)
    run = contract.test()
    rows = {check.diagnostics["row_count"] for check in run.checks if "row_count" in (check.diagnostics or {})}
    failed = [check.name for check in (*contract.lint().checks, *run.checks) if check.result != "passed"]
    return [run.result, sorted(rows), failed]
with ThreadPoolExecutor(4) as threads:
    for one in threads.map(found, sys.argv[1:]):
        print(json.dumps(one))
"""
FOLDER = ROOT / "data" / "contracts"
NAMES = sorted(file.name.removesuffix(".odcs.yaml") for file in FOLDER.iterdir())
IN_AVRO, SCHEMA = "wikimedia.processed", data_file("schemas/wikimedia.processed-value.avsc").read_text()


@pytest.fixture(scope="module", autouse=True)
def environment():
    done = subprocess.run([*IN_ENVIRONMENT, "datacontract", "--version"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"uv cannot install datacontract-cli: {done.stderr.strip()}")


@pytest.fixture
def kafka(tmp_path):
    return MockKafka(tmp_path, NAMES)


def found(kafka, *names):
    """What the tool finds of each contract: its result, how many rows it has read, and the checks that have not passed."""
    home = kafka.settings.home
    for name in names:
        text = (FOLDER / f"{name}.odcs.yaml").read_text()
        (home / name).write_text(text.replace(Settings().bootstrap_servers, kafka.settings.bootstrap_servers))
    with schemas_served({7: SCHEMA}) as (registry, _):
        variables = os.environ | {"DATACONTRACT_KAFKA_SCHEMA_REGISTRY_URL": registry}
        command = [*IN_ENVIRONMENT, "python", "-c", CHECK, *names]
        done = subprocess.run(command, cwd=home, env=variables, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert len(lines) == len(names), done.stderr
    return dict(zip(names, lines, strict=True))


def test_each_contract_is_valid_and_the_rows_of_its_topic_keep_it(kafka):
    for name in set(NAMES) - {IN_AVRO}:
        kafka.write(name, orjson.dumps(example(name)), orjson.dumps(example(name)), None)
    kafka.write(IN_AVRO, in_wire_format(checked(DECLARED[IN_AVRO], example(IN_AVRO)), 7, SCHEMA))
    assert found(kafka, *NAMES) == {name: ["passed", [1 if name == IN_AVRO else 2], []] for name in NAMES}


def test_a_row_with_wrong_values_breaks_the_contract(kafka):
    name = "nest-camera-status"
    kafka.write(name, orjson.dumps(example(name) | {"device_id": None, "state": "asleep", "since": "noon"}))
    broken = [
        "Check that field device_id has no missing values",
        "Check that field state only contains enum values ['online', 'offline']",
        "Check that field since has no missing values",
    ]
    assert found(kafka, name) == {name: ["failed", [1], broken]}
