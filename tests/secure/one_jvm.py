"""Runs commands one after the other in a process of its own, on one JVM whose clients log what they are told.

Where Spark logs, what it is configured with and the variables that Kafka's clients may refer to are those of the JVM's start.
Takes {name: [arguments, settings as environment variables]} as JSON, and prints {name: [exit code, stdout, stderr]}, and as "command lines" those
of this process and its children.
"""

import contextlib
import json
import sys

import psutil
from running import streamgauge

from infrastructure.settings import Settings
from pipeline.spark.session import spark_session

commands = json.load(sys.stdin)
spark = spark_session(Settings.from_environment())
log4j = spark._jvm.org.apache.logging.log4j
for logger in ("", "org.apache.kafka", "org.apache.spark"):
    log4j.core.config.Configurator.setLevel(logger, log4j.Level.INFO)
told = {}
for name, (arguments, variables) in commands.items():
    done = streamgauge(*arguments, settings=Settings.from_environment(variables), without_spark=True)
    told[name] = [done.returncode, done.stdout, done.stderr]
me = psutil.Process()
told["command lines"] = []
for process in (me, *me.children(recursive=True)):
    with contextlib.suppress(psutil.NoSuchProcess):  # a child may end meanwhile
        told["command lines"].append(" ".join(process.cmdline()))
spark.stop()  # writes the end of the event log
json.dump(told, sys.stdout)
