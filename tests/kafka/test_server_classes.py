"""The archives of the classes that the embedded servers load."""

import re

import pytest
from running import settings_on_free_ports, start_server

from streamgauge.platform.kafka import EmbeddedKafka
from streamgauge.platform.platform import save_server_classes
from streamgauge.platform.registry import EmbeddedRegistry


@pytest.mark.parametrize("kind", [EmbeddedKafka, EmbeddedRegistry])
def test_a_server_takes_its_classes_from_the_archive(kind, tmp_path, monkeypatch):
    own = settings_on_free_ports(tmp_path / "home")
    save_server_classes(own)
    loaded = tmp_path / "classes"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Xlog:class+load:file={loaded}")
    server = kind(own)
    start_server(server)
    server.stop()
    # Java archives neither lambdas nor the classes of a signed jar.
    classes = [line for line in loaded.read_text().splitlines() if not re.search("Lambda|LambdaForm|com.microsoft|eclipse.jgit", line)]
    archived = [line for line in classes if "shared objects file" in line]
    assert len(archived) > 0.8 * len(classes) > 1000, f"{len(archived)} of {len(classes)} classes came from the archive"
