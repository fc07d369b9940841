"""A real HDFS on loopback: a NameNode and a DataNode, from one jar."""

from pathlib import Path

import pyspark
import requests
from running import eventually

from infrastructure.java import jars
from infrastructure.java.runtime import java_home
from infrastructure.process.ports import free_ports
from streamgauge.platform.processes import GuardedProcess

_SERVER = "org.apache.hadoop.hdfs.server"


class HdfsServer:
    """Its files outlive a stop."""

    def __init__(self, folder: Path, settings) -> None:
        self._folder, self._running = folder, []
        port, web_port = free_ports(2)
        self.uri, self.web_url = f"hdfs://127.0.0.1:{port}", f"http://127.0.0.1:{web_port}"
        own = {
            "fs.defaultFS": self.uri,
            "dfs.namenode.name.dir": folder / "names",
            "dfs.datanode.data.dir": folder / "blocks",
            "dfs.namenode.rpc-address": f"127.0.0.1:{port}",
            "dfs.namenode.http-address": f"127.0.0.1:{web_port}",
            **{f"dfs.datanode.{name}address": "127.0.0.1:0" for name in ("", "http.", "ipc.")},
            "dfs.replication": 1,
            "dfs.namenode.safemode.extension": 0,
        }
        properties = "".join(f"<property><name>{name}</name><value>{value}</value></property>" for name, value in own.items())
        for name in ("core-site.xml", "hdfs-site.xml"):
            (folder / name).write_text(f"<configuration>{properties}</configuration>")
        (jar,) = jars.fetch("hdfs", settings)
        path = f"{folder}:{jar}:{Path(pyspark.__file__).parent / 'jars'}/*"
        self._java = [str(java_home(settings) / "bin/java"), "-Xmx256m", "-XX:+UseSerialGC", "-cp", path]
        self._run("format", "namenode.NameNode", "-format").popen.wait()

    def start(self) -> None:
        """Starts it, unless it runs."""
        if not self._running:
            self._running = [self._run("names", "namenode.NameNode"), self._run("blocks", "datanode.DataNode")]
            eventually(self._answers, f"HDFS to answer; see its logs in {self._folder}")

    def stop(self) -> None:
        for process in reversed(self._running):
            process.stop()
        self._running = []

    def _run(self, log: str, program: str, *arguments: str) -> GuardedProcess:
        return GuardedProcess.start([*self._java, f"{_SERVER}.{program}", *arguments], log=self._folder / f"{log}.log")

    def _answers(self) -> bool:
        try:
            (state,) = requests.get(f"{self.web_url}/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState", timeout=5).json()["beans"]
        except (requests.RequestException, ValueError):
            return False
        return state["NumLiveDataNodes"] == 1 and state["FSState"] == "Operational"
