"""What `make` installs, and when."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]


@pytest.fixture
def clone(tmp_path):
    """A folder with what make looks at, where uv is installed and nothing else."""
    for name in ("Makefile", "pyproject.toml", "uv.lock"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / ".uv" / "bin").mkdir(parents=True)
    (tmp_path / ".uv" / "bin" / "uv").touch()
    (tmp_path / ".venv").mkdir()
    return tmp_path


def planned(clone, target):
    """The commands that `make target` would run to install packages."""
    done = subprocess.run(["make", "-n", target], cwd=clone, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if "uv sync" in line]


def test_the_demo_installs_no_development_tools_and_removes_none_and_uv_shows_its_progress(clone):
    (command,) = planned(clone, "demo")
    assert command.endswith('uv sync --frozen --compile-bytecode --python "$python" --no-dev --inexact')


@pytest.mark.parametrize("target", ["check", "test-unit", "chaos", "bench", "setup"])
def test_checks_and_tests_install_development_tools_once_and_the_demo_then_nothing(clone, target):
    (command,) = planned(clone, target)
    assert command.rstrip().endswith('uv sync --frozen --compile-bytecode --python "$python"')
    for stamp in (".dev", ".ready"):
        (clone / ".venv" / stamp).touch()
    assert planned(clone, target) == planned(clone, "demo") == []


def test_what_make_runs_keeps_compiled_modules_whatever_the_environment_says(clone, monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    done = subprocess.run(["make", "--eval", "shown: ; @env", "shown"], cwd=clone, capture_output=True, text=True, check=True)
    assert "PATH=" in done.stdout
    assert "PYTHONDONTWRITEBYTECODE" not in done.stdout


def test_clean_deletes_no_data(clone):
    """Neither that of a demo that runs nor any other: `streamgauge clean` asks first, and refuses while it is in use."""
    kept = [clone / name / "kafka" for name in (".streamgauge", "lake/.streamgauge")]
    for folder in (*kept, clone / "build"):
        folder.mkdir(parents=True)
    subprocess.run(["make", "clean"], cwd=clone, capture_output=True, check=True)
    assert all(folder.exists() for folder in kept)
    assert not (clone / "build").exists()


def test_the_python_of_make_and_the_lock_are_the_same():
    required = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    oldest, first_too_new = required.removeprefix(">=").split(",<")
    assert tomllib.loads((ROOT / "uv.lock").read_text())["requires-python"] == f">={oldest}, <{first_too_new}"
    assert f"({oldest.replace('.', ', ')}) <= sys.version_info < ({first_too_new.replace('.', ', ')})" in (ROOT / "Makefile").read_text()


def test_the_image_gets_every_package_of_the_wheel_and_its_data():
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    copied = {line.strip("!/") for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert {*wheel["packages"], *wheel["force-include"]} - copied == set()


@pytest.mark.parametrize("lock", ["uv.lock", "lake/uv.lock"])
def test_each_lock_is_of_the_dependencies_that_the_project_has(lock):
    """`make` installs from an older lock, too."""
    (locked,) = [one for one in tomllib.loads((ROOT / lock).read_text())["package"] if one["name"] == "streamgauge"]
    of_lock = {one["name"]: Requirement(one["name"] + one.get("specifier", "")).specifier for one in locked["metadata"]["requires-dist"]}
    assert of_lock == {one.name: one.specifier for one in required_packages()}, (
        "write it anew: .uv/bin/uv lock, with --project lake for that one"
    )


def required_packages():
    """What the project requires, with its extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [Requirement(text) for group in (project["dependencies"], *project["optional-dependencies"].values()) for text in group]


def test_the_lower_bound_of_a_dependency_is_the_version_that_the_tests_run_with():
    """Nothing tests a lower one."""
    packages = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    locked = {one["name"]: [of["version"] for of in packages if of["name"] == one["name"]] for one in packages if "version" in one}
    bounds = {
        one.name: [spec.version.removesuffix(".*") for spec in one.specifier if spec.operator in {">=", "=="}]
        for one in required_packages()
    }
    assert {name: lower for name, lower in bounds.items() if not any(_is_up_to_patches(version, lower) for version in locked[name])} == {}


def _is_up_to_patches(version: str, lower: list[str]) -> bool:
    """Whether there is one lower bound, and it is `version` but for patches: 26 and 26.0 are bounds of 26.0.1, and 3 is none of 3.3.9."""
    return [f"{version}.".startswith(f"{bound if '.' in bound else f'{bound}.0'}.") for bound in lower] == [True]


@pytest.mark.parametrize("workflow", sorted((ROOT / ".github" / "workflows").iterdir()), ids=lambda path: path.name)
def test_a_workflow_runs_targets_that_exist(workflow):
    targets = re.findall(r"\bmake ([a-z-]+)", workflow.read_text())
    assert targets
    assert [target for target in targets if not re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)] == []
