"""A PySpark program of one's own, as spark-submit runs it with the packages that `streamgauge packages` prints."""

import subprocess
import sys

from plain import write_topic
from running import PROCESS_SECONDS, SHORT_LIVED, environment, succeed

from infrastructure.java.jars import fetch
from infrastructure.java.runtime import java_home
from streamgauge.platform.spark_daemons import SPARK_HOME

PROGRAM = """
import os
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
reader = spark.read.format("kafka").option("kafka.bootstrap.servers", os.environ["BROKER"])
print([row.value.decode() for row in reader.option("subscribe", "nest-logs").load().collect()])
"""


def test_a_program_of_ones_own_reads_a_topic_with_the_packages_of_spark_submit(fresh, tmp_path):
    write_topic(fresh, "nest-logs", [b"one"])
    program = tmp_path / "mine.py"
    program.write_text(PROGRAM)
    fetch("spark", fresh)
    packages = succeed("packages", settings=fresh).stdout.strip()
    chosen = ["--master", "local[1]", "--packages", packages, "--conf", f"spark.jars.ivy={tmp_path / 'ivy'}"]
    done = subprocess.run(
        [SPARK_HOME / "bin" / "spark-submit", *chosen, "--driver-java-options", SHORT_LIVED, program],
        env=environment(
            fresh,
            BROKER=fresh.bootstrap_servers,
            JAVA_HOME=str(java_home(fresh)),
            PYSPARK_PYTHON=sys.executable,
            DEFAULT_ARTIFACT_REPOSITORY=f"{(fresh.cache / 'maven').as_uri()}/",
        ),
        capture_output=True,
        text=True,
        timeout=PROCESS_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip() == "['one']"
