"""`python -m crash_points.worker CASE`: does the work of a case for each line that it reads, in one Spark session; answers with a line."""

import os
import sys
from contextlib import nullcontext

from crash_points.cases import CASES, Case
from crash_points.enumeration import DONE
from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings


def forget_tables(case: Case) -> None:
    """As in a new process, Delta must know of its tables only what is in their folders."""
    from pyspark.sql import SparkSession

    if case.spark == "with Delta" and (session := SparkSession.getActiveSession()):
        session._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def main() -> None:
    from pipeline.spark.session import running_session

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Delta prints there how many files it has deleted
    case, settings = CASES[sys.argv[1]], Settings.from_environment()
    with running_session(settings, in_real_time=case.spark == "in real time") if case.spark else nullcontext():
        for _ in sys.stdin:
            forget_tables(case)
            try:
                case.work(settings)
                answer = DONE
            except (StreamgaugeError, RuntimeError) as error:
                answer = " ".join(str(error).split())
            answers.write(f"{answer}\n")
            answers.flush()


if __name__ == "__main__":
    main()
