"""Runs the demo under load and draws what it uses over time: `PYTHONPATH=tests python -m benchmarks.soak MINUTES [PICTURE.svg]`.

At its own rates for three minutes; beside a producer of Nest documents at RATE for MINUTES; at its own rates for three more. Prints the same
figures for the last minute of each part, and the last as a multiple of the first. An hour of event time takes a minute. The picture needs
the group `pictures`: `.uv/bin/uv sync --inexact --group pictures`.
"""

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from math import isnan
from pathlib import Path

import altair as alt
import pandas as pd
import psutil
from running import environment

from benchmarks.daily import beside
from benchmarks.measuring import ME, MIB, batches, family, own_settings, say, say_machine
from infrastructure.settings import Settings

RATE = 8000
BEFORE_SECONDS, AFTER_SECONDS, SAMPLE_SECONDS, END_SECONDS = 180, 180, 30, 300
KINDS = {"kafka.Kafka": "Kafka", "/spark.log": "Spark", "-runner.jar": "schema registry", "streamlit": "dashboard"}
"""Part of a command line, and what the process is called."""


def main() -> None:
    """Prints a line a figure."""
    minutes, *pictures = sys.argv[1:]
    seconds = float(minutes) * 60
    say_machine()
    with tempfile.TemporaryDirectory() as home:
        settings = own_settings(Path(home))
        with subprocess.Popen([*ME, "demo"], env=environment(settings), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as demo:
            try:
                ends, used = run(settings, demo, seconds)
                reported = pd.DataFrame(batches(settings))
                reported["time"] = pd.to_datetime(reported["time"])
            finally:
                demo.send_signal(signal.SIGINT)
                demo.wait(END_SECONDS)
    for line in compared(reported, used, ends):
        say(line)
    for path in pictures:
        picture(reported, used).save(path)


def run(settings: Settings, demo: "subprocess.Popen[bytes]", seconds: float) -> tuple[list[datetime], pd.DataFrame]:
    """Samples the demo, under load for so many seconds; returns the end of each part, and the samples: time, name, value."""
    samples: list[tuple[datetime, str, float]] = []
    ends = []

    def sample_until(end: float) -> None:
        while time.monotonic() < end:
            if demo.poll() is not None:
                sys.exit(f"the demo ended with exit code {demo.returncode}")
            samples.extend((datetime.now(UTC), name, value) for name, value in weighed(settings, demo.pid).items())
            time.sleep(min(SAMPLE_SECONDS, max(0, end - time.monotonic())))
        ends.append(datetime.now(UTC))

    started = time.monotonic()
    sample_until(started + BEFORE_SECONDS)
    with beside("produce", "nest", "--continue", "--rate", str(RATE), "--speed-up", "60", settings=settings):
        sample_until(started + BEFORE_SECONDS + seconds)
    sample_until(started + BEFORE_SECONDS + seconds + AFTER_SECONDS)
    return ends, pd.DataFrame(samples, columns=["time", "name", "value"])


def weighed(settings: Settings, pid: int) -> Mapping[str, float]:
    """Memory of each kind of process in MiB, and the number of files of checkpoints, tables and logs of Kafka."""
    memory: dict[str, float] = {}
    for process in family(pid):
        with suppress(psutil.NoSuchProcess):
            line = " ".join(process.cmdline())
            kind = next((name for part, name in KINDS.items() if part in line), "others")
            memory[f"MiB, {kind}"] = memory.get(f"MiB, {kind}", 0) + process.memory_full_info().pss / MIB
    folders = {"checkpoints": Path(str(settings.checkpoints)), "tables": Path(str(settings.lake)), "everything": settings.home}
    return memory | {f"files, {name}": sum(1 for _ in folder.rglob("*")) for name, folder in folders.items()}


def compared(reported: pd.DataFrame, used: pd.DataFrame, ends: list[datetime]) -> Iterator[str]:
    """A line a figure: in the minute before each of `ends`, and the last as a multiple of the first."""
    yield f"Nest documents: {reported[reported['query'] == 'nest-camera-stats'].input_rows.sum():,}"
    for query, of_query in reported.groupby("query"):
        minutes = [_minute(of_query, end) for end in ends]
        yield _line(f"{query}: median batch, ms", [minute.batch_ms.median() for minute in minutes])
        yield _line(f"{query}: rows of state", [minute.state_rows.max() for minute in minutes])
        yield _line(f"{query}: records/s", [minute.input_rows.sum() / 60 for minute in minutes])
        yield _line(f"{query}: percent of the time in batches", [minute.batch_ms.sum() / 600 for minute in minutes])
    for name, of_name in used.groupby("name"):
        yield _line(str(name), [_minute(of_name, end).value.max() for end in ends])


def _minute(rows: pd.DataFrame, end: datetime) -> pd.DataFrame:
    return rows[(rows.time > end - timedelta(minutes=1)) & (rows.time <= end)]


def _line(name: str, values: list[float]) -> str:
    shown = "; ".join("none" if isnan(value) else f"{value:,.0f}" for value in values)
    return f"{name}: {shown}" + (f"; last / first {values[-1] / values[0]:.2f}" if values[0] > 0 and values[-1] >= 0 else "")


def picture(reported: pd.DataFrame, used: pd.DataFrame) -> alt.VConcatChart:
    """Batch time, state, memory and files over time, each with its own scale."""
    kind, name = (column for _, column in used.name.str.split(", ", n=1, expand=True).items())
    frames = {
        "median batch in a minute, ms": reported.assign(value=reported.batch_ms, name=reported["query"]),
        "rows of state": reported[reported.state_rows > 0].assign(value=reported.state_rows, name=reported["query"]),
        "memory, MiB": used.assign(name=name)[kind == "MiB"],
        "files": used.assign(name=name)[kind == "files"],
    }
    return alt.vconcat(*(_lines(title, frame) for title, frame in frames.items())).resolve_scale(color="independent")


def _lines(title: str, frame: pd.DataFrame) -> alt.Chart:
    by_minute = frame.groupby(["name", pd.Grouper(key="time", freq="1min")]).value.median().dropna().reset_index()
    by_minute["minute"] = (by_minute.time - by_minute.time.min()).dt.total_seconds() / 60
    return (
        alt.Chart(by_minute, width=640, height=140)
        .mark_line()
        .encode(alt.X("minute:Q", title="minutes"), alt.Y("value:Q", title=title), alt.Color("name:N", title=None))
    )


if __name__ == "__main__":
    main()
