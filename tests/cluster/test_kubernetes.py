"""An executor as the Kubernetes example has it, asked for by a real driver of a small API server, which starts pods as processes."""

import json
import os
import re
import subprocess
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from running import PROCESS_SECONDS, SHORT_LIVED, free_ports
from web_server import Quiet, serving

MANIFEST = Path(__file__).parents[2] / "deploy" / "kubernetes" / "streamgauge.yaml"
DRIVER = """
from infrastructure.settings import Settings
from pipeline.spark.session import running_session

with running_session(Settings.from_environment()) as spark:
    print(spark.range(5).mapInPandas(lambda frames: (frame + 1 for frame in frames), "id long").collect())
"""
ENVIRONMENT = {
    name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "STREAMGAUGE_")) or name == "STREAMGAUGE_CACHE"
}


class ApiServer(Quiet, BaseHTTPRequestHandler):
    """Knows pods alone. A pod is a process with the arguments and variables of its container."""

    pods: dict[str, dict]
    processes: dict[str, subprocess.Popen]
    folder: Path

    def do_GET(self):
        name = self.path.partition("?")[0].rpartition("/")[2]
        if name == "pods":
            self._answer(
                {
                    "kind": "PodList",
                    "apiVersion": "v1",
                    "metadata": {"resourceVersion": "1"},
                    "items": [self.pods[one] for one in self.processes],
                }
            )
        elif name in self.pods:
            self._answer(self.pods[name])
        else:
            self._answer({"kind": "Status", "apiVersion": "v1", "status": "Failure"}, HTTPStatus.NOT_FOUND)

    def do_POST(self):
        pod = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        kubernetes_validate.validate(pod, "1.34")
        name, (container,) = pod["metadata"]["name"], pod["spec"]["containers"]
        of_the_pod = {"status.podIP": "127.0.0.1", "metadata.name": name}
        variables = {one["name"]: one.get("value") or of_the_pod[one["valueFrom"]["fieldRef"]["fieldPath"]] for one in container["env"]}
        variables["SPARK_LOCAL_DIRS"] = str(self.folder)
        command = [sys.executable, "-m", "streamgauge.cli", *container["args"]]
        self.processes[name] = subprocess.Popen(command, env={**ENVIRONMENT, "PYTHONPATH": str(Path.cwd()), **variables}, cwd=self.folder)
        self.pods[name] = pod | {"status": {"phase": "Running", "podIP": "127.0.0.1"}}
        self._answer(self.pods[name], HTTPStatus.CREATED)

    def do_DELETE(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        for process in self.processes.values():
            process.terminate()
        self._answer({"kind": "Status", "apiVersion": "v1", "status": "Success"})

    def _answer(self, thing, status=HTTPStatus.OK):
        text = json.dumps(thing).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


@pytest.mark.long
def test_an_executor_of_the_manifest_registers_shares_the_home_and_runs_python(tmp_path):
    objects = list(yaml.safe_load_all(MANIFEST.read_text()))
    (files,) = (one["data"] for one in objects if (one["kind"], one["metadata"]["name"]) == ("ConfigMap", "streamgauge-spark"))
    port, block_manager = free_ports(2)
    changes = {"/etc/spark": str(tmp_path), "0.0.0.0": "127.0.0.1", " 7078": f" {port}", " 7079": f" {block_manager}"}
    options = files["spark-defaults.conf"]
    for old, new in changes.items():
        options = options.replace(old, new)
    options = re.sub(r"(spark\.executor\.instances +)2", r"\g<1>1", options)
    # The API server has no watches, which are only faster than asking again.
    (tmp_path / "spark-defaults.conf").write_text(options + "spark.kubernetes.executor.enableApiWatcher false\n")
    (tmp_path / "executor.yaml").write_text(files["executor.yaml"])
    driver_pod = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "streamgauge-pipeline-0", "uid": "1"},
        "spec": {"containers": []},
        "status": {"phase": "Running"},
    }
    state = {"pods": {"streamgauge-pipeline-0": driver_pod}, "processes": {}, "folder": tmp_path, "protocol_version": "HTTP/1.1"}
    handler = type("Server", (ApiServer,), state)
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), handler)) as url:
        chosen = {
            "SPARK_CONF_DIR": str(tmp_path),
            "SPARK_MASTER": f"k8s://{url}",
            "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9",
            "STREAMGAUGE_HOME": str(tmp_path / "home"),
            "STREAMGAUGE_SHARED_HOME": "true",
            "STREAMGAUGE_DRIVER_HOST": "127.0.0.1",
            "STREAMGAUGE_DRIVER_MEMORY": "512m",
            "STREAMGAUGE_EXECUTOR_MEMORY": "512m",
            "STREAMGAUGE_DRIVER_JAVA_OPTIONS": SHORT_LIVED,
        }
        try:
            command = [sys.executable, "-c", DRIVER]
            done = subprocess.run(command, env=ENVIRONMENT | chosen, capture_output=True, text=True, timeout=PROCESS_SECONDS, check=False)
        finally:
            for process in handler.processes.values():
                process.kill()
                process.wait()
    assert "Row(id=1), Row(id=2), Row(id=3), Row(id=4), Row(id=5)" in done.stdout, done.stderr
    assert len(handler.processes) == 1
