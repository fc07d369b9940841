"""The daemon that forks Spark's Python processes, in which state in Python runs.

With Spark's own daemon, each task reads the directories of pyspark.zip and of a jar again, and garbage collection visits every imported
module: two thirds of the CPU time of a small task. This daemon uses the installed PySpark, imports what tasks need before it forks, and
excludes these modules from garbage collection.
"""

import gc
import sys
from pathlib import Path

_ARCHIVES = ("pyspark.zip", "py4j-", "spark-core_")
"""How the names of the archives begin that Spark adds to the path."""


def main() -> None:
    """Serves until the JVM ends. The argument is the module that a task runs."""
    for entry in [entry for entry in sys.path if Path(entry).name.startswith(_ARCHIVES)]:
        sys.path.remove(entry)
        sys.path_importer_cache.pop(entry, None)
    if sys.platform != "darwin":  # whose libraries may abort a process that was forked after they were loaded
        import pandas  # noqa: F401
        import pyarrow  # noqa: F401
    from pyspark.daemon import manager

    gc.freeze()
    manager()


if __name__ == "__main__":
    main()
