"""The embedded schema registry: Apicurio Registry with Confluent's API, on loopback. It keeps its ids in a file."""

import contextlib
from pathlib import Path

from infrastructure.errors import StreamgaugeError
from infrastructure.java import jars
from infrastructure.registry.server import RegistryServer
from infrastructure.settings import Settings
from streamgauge.platform.listening import HOST
from streamgauge.platform.processes import PidFile
from streamgauge.platform.server import STALL_SECONDS, EmbeddedServer, Launch

COMPATIBILITY = "BACKWARD"
"""A new schema version must be able to read data written with the previous one. A new registry has no such rule."""
# Half the memory and start time of Java's defaults. A registry with a few schemas has no hot code.
_JAVA_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xms32m", "-Xmx192m")


class EmbeddedRegistry(EmbeddedServer):
    """The schema registry of one STREAMGAUGE_HOME.

    It stores an id on disk before it returns the id, because only the registry can resolve the ids in records.
    """

    name = "schema registry"

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.folder = settings.home.absolute() / "registry"
        self.log = settings.logs.absolute() / "registry.log"
        self.pid_file = PidFile(self.folder / "registry.pid")
        self.ports = (settings.registry_port,)
        self.port_advice = "choose another port with STREAMGAUGE_REGISTRY_PORT, or use that registry with SCHEMA_REGISTRY_URL"
        self.address = settings.registry_url

    def answers(self) -> bool:
        """Whether the registry answers. Sets the compatibility rule if the registry is new."""
        from infrastructure.registry.client import SchemaRegistry  # slow to import

        registry = SchemaRegistry(RegistryServer(self.address))
        with contextlib.suppress(StreamgaugeError):
            if registry.compatibility == "NONE":
                registry.set_compatibility(COMPATIBILITY)
            return True
        return False

    @property
    def class_path(self) -> list[Path]:
        """The jar that names all others. Downloads and unpacks them if they are missing."""
        folder = jars.unpacked("registry", self.settings)
        if not (runners := list(folder.glob("*-runner.jar"))):
            msg = f"{folder} has lost files of the schema registry; delete it, and the next start unpacks them again"
            raise StreamgaugeError(msg)
        return runners

    def _prepare(self) -> Launch:
        (runner,) = self.class_path
        return Launch([str(self.java), *_JAVA_FLAGS, self.temporary_files, "-jar", str(runner)], self._environment(), self.log)

    def _environment(self) -> dict[str, str]:
        return {
            "QUARKUS_HTTP_HOST": HOST,
            "QUARKUS_HTTP_PORT": str(self.settings.registry_port),
            "QUARKUS_HTTP_ACCESS_LOG_ENABLED": "false",
            "APICURIO_STORAGE_KIND": "sql",
            "APICURIO_STORAGE_SQL_KIND": "h2",
            # Relative to the folder that the registry runs in: in an absolute path, a semicolon would begin an option.
            # By default, H2 writes a commit half a second later; after a kill in between, the same id would be assigned twice.
            "APICURIO_DATASOURCE_URL": "jdbc:h2:file:./data/registry;WRITE_DELAY=0",
            "APICURIO_DATASOURCE_JDBC_INITIAL_SIZE": "1",
            "APICURIO_DATASOURCE_JDBC_MIN_SIZE": "1",
            "APICURIO_DATASOURCE_JDBC_MAX_SIZE": "10",
            # By default five seconds: on a busy machine, opening the file takes longer, and the registry ended as it started.
            "QUARKUS_DATASOURCE_H2_JDBC_ACQUISITION_TIMEOUT": f"{STALL_SECONDS}S",
        }
