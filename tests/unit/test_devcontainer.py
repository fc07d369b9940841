"""The development container fits what it opens: the image, the Makefile, the commands and the port."""

import json
import re
import shlex

import pytest
from documents import ROOT
from typer.testing import CliRunner

from infrastructure.settings import Settings
from streamgauge.cli import app


@pytest.fixture
def container():
    text = (ROOT / ".devcontainer" / "devcontainer.json").read_text()
    return json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))


def test_its_image_is_that_of_the_product_but_not_slim(container):
    (image,) = re.findall(r"^ARG PYTHON_IMAGE=(.*)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert container["image"] == image.replace("-slim", "")


def test_it_forwards_the_port_of_the_dashboard(container):
    port = Settings().dashboard_port
    assert container["forwardPorts"] == [port]
    assert list(container["portsAttributes"]) == [str(port)]


def test_it_runs_commands_that_exist(container):
    commands = [shlex.split(part) for name in ("updateContentCommand", "postStartCommand") for part in container[name].split("&&")]
    assert [command[0] for command in commands] == ["make", ".venv/bin/streamgauge", ".venv/bin/streamgauge"]
    assert f"\n{commands[0][1]}:" in (ROOT / "Makefile").read_text()
    for _, *arguments in commands[1:]:
        shown = CliRunner().invoke(app, [*arguments, "--help"])
        assert shown.exit_code == 0, shown.output
