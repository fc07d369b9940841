"""The wheel, as `uv build` makes it, runs without the clone that it was made from."""

import os
import subprocess
import sys
import tomllib
import zipfile

import pytest
from documents import ROOT

UV = ROOT / ".uv" / "bin" / "uv"
USES_DATA = (
    "import pipeline.domains.nest; from infrastructure.storage.data_files import data_file; print(data_file('device_locations.csv'))"
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([UV, "build", "--wheel", "--quiet", "--out-dir", folder, ROOT], check=True)
    (built,) = folder.glob("*.whl")
    return zipfile.ZipFile(built)


def test_it_has_every_file_of_its_packages_and_the_data(wheel):
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    listed = subprocess.run(["git", "ls-files", *packages, "data"], cwd=ROOT, capture_output=True, text=True, check=True)
    names = [name for name in listed.stdout.splitlines() if (ROOT / name).exists()]
    expected = {f"infrastructure/{name}" if name.startswith("data/") else name for name in names}
    assert {name for name in wheel.namelist() if ".dist-info/" not in name} == expected


def test_it_finds_its_packages_and_data_beside_others_of_the_same_name(wheel, tmp_path):
    installed, folder = tmp_path / "inställt här", tmp_path / "work"
    wheel.extractall(installed)
    (folder / "pipeline").mkdir(parents=True)
    (folder / "pipeline" / "__init__.py").write_text("raise RuntimeError('this one is another')")
    environment = os.environ | {"PYTHONPATH": str(installed)}
    command = [sys.executable, "-P", "-c", USES_DATA]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == str(installed / "infrastructure" / "data" / "device_locations.csv"), done.stderr
