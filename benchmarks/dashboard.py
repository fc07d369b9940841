"""Measures the dashboard on this machine: `PYTHONPATH=tests python -m benchmarks.dashboard [tabs keys]`, both by default.

tabs   CPU and memory of the dashboard's process while TABS browser tabs show the taxi page and its table changes each second
keys   seconds until a tab shows a table of KEYS keys, from the start of the process, and its memory

A tab is a connection that does what Streamlit's own client does: it runs the page, and again whenever the page has asked for it.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta

import httpx2
import psutil
from confluent_kafka import Producer
from running import environment
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import connect

from benchmarks.measuring import MIB, cpu_seconds, family, fresh_platform, resident_bytes, say, say_machine, unit_seconds
from contract.domains.nest import NEST_CAMERA_STATS
from contract.domains.taxi import TAXI_BOROUGH_STATS
from dashboard.server import dashboard_command, dashboard_url
from infrastructure.settings import Settings

TABS, SECONDS, KEYS = 50, 60, 1_000_000
BOROUGHS, HOURS = ("Bronx", "Brooklyn", "EWR", "Manhattan", "Queens", "Staten Island", "Unknown"), 1_000
START = datetime(2024, 3, 1, tzinfo=UTC)


def main() -> None:
    """Prints a line a figure."""
    chosen = sys.argv[1:] or ["tabs", "keys"]
    say_machine()
    with fresh_platform() as settings:
        if "tabs" in chosen:
            asyncio.run(measure_tabs(settings))
        if "keys" in chosen:
            asyncio.run(measure_keys(settings))


async def measure_tabs(settings: Settings) -> None:
    """What TABS tabs cost in SECONDS, once all of them show the table."""
    producer = settings.kafka.producer({})
    for hour in range(HOURS):
        write_taxi(producer, hour, 1)
    producer.flush()
    with served(settings) as process:
        shown = [asyncio.Event() for _ in range(TABS)]
        tabs = [asyncio.create_task(tab(settings, "taxi", event)) for event in shown]
        await asyncio.gather(*(event.wait() for event in shown))
        used, started = cpu_seconds(process.pid), time.monotonic()
        while time.monotonic() - started < SECONDS:
            write_taxi(producer, HOURS - 1, int(time.monotonic()))
            producer.flush()
            await asyncio.sleep(1)
        cores = (cpu_seconds(process.pid) - used) / (time.monotonic() - started)
        memory = resident_bytes(family(process.pid))
        say(f"{TABS} tabs: {cores:.2f} cores ({cores / unit_seconds():.1f} CPU units a second), {memory / MIB:.0f} MiB")
        for one in tabs:
            one.cancel()


async def measure_keys(settings: Settings) -> None:
    """How long a table of KEYS takes to open."""
    producer = settings.kafka.producer({"queue.buffering.max.messages": 1_000_000})
    for number in range(KEYS):
        window = window_of(number // 1_000)
        value = json.dumps({"zip_code": f"{number % 1_000:05}", "window": window, "count": number % 50 + 1})
        while True:
            with suppress(BufferError):
                producer.produce(NEST_CAMERA_STATS.name, value, str(number))
                break
            producer.poll(1)
    producer.flush()
    started = time.monotonic()
    with served(settings) as process:
        shown = asyncio.Event()
        one = asyncio.create_task(tab(settings, "nest", shown))
        await shown.wait()
        memory = resident_bytes(family(process.pid))
        say(f"{KEYS:,} keys: shown after {time.monotonic() - started:.1f} s ({cpu_seconds(process.pid):.1f} CPU s), {memory / MIB:.0f} MiB")
        one.cancel()


async def tab(settings: Settings, page: str, shown: asyncio.Event) -> None:
    """A browser tab on the page. Sets `shown` when the page has figures."""
    url = f"{dashboard_url(settings).replace('http', 'ws')}/_stcore/stream"
    async with (
        connect(url, subprotocols=["streamlit"], max_size=None, open_timeout=None, ping_interval=None) as socket,
        asyncio.TaskGroup() as timers,
    ):  # type: ignore[list-item]
        await socket.send(rerun(name=page))
        timer: asyncio.Task[None] | None = None

        async def refresh(script: str, fragment: str, interval: float) -> None:
            while True:
                await asyncio.sleep(interval)
                await socket.send(rerun(script=script, fragment=fragment))

        async for data in socket:
            message = ForwardMsg.FromString(data)  # type: ignore[arg-type]
            kind = message.WhichOneof("type")
            if kind == "navigation":
                script = message.navigation.page_script_hash
            elif kind == "auto_rerun":
                if timer is not None:
                    timer.cancel()
                timer = timers.create_task(refresh(script, message.auto_rerun.fragment_id, message.auto_rerun.interval))
            elif kind == "delta" and message.delta.new_element.WhichOneof("type") == "metric":
                shown.set()


def rerun(*, name: str = "", script: str = "", fragment: str = "") -> bytes:
    """What a tab asks for: a page by its name, or a fragment of a page that it has."""
    asked = BackMsg()
    asked.rerun_script.page_name = name
    asked.rerun_script.page_script_hash = script
    asked.rerun_script.fragment_id = fragment
    asked.rerun_script.is_auto_rerun = bool(fragment)
    return asked.SerializeToString()


@contextmanager
def served(settings: Settings) -> Iterator[subprocess.Popen[bytes]]:
    """The dashboard's process, which answers."""
    process = subprocess.Popen(dashboard_command(settings), env=environment(settings), stdout=subprocess.DEVNULL)
    try:
        while True:
            with suppress(httpx2.ConnectError):
                httpx2.get(f"{dashboard_url(settings)}/_stcore/health", timeout=5)
                break
            psutil.Process(process.pid)  # raises if it has ended
            time.sleep(0.1)
        yield process
    finally:
        process.terminate()
        process.wait()


def write_taxi(producer: Producer, hour: int, trips: int) -> None:
    """One row of each borough."""
    for borough in BOROUGHS:
        sums = dict.fromkeys(("trip_distance_sum", "fare_amount_sum", "tip_amount_sum", "total_amount_sum"), 1.0)
        row = {"borough": borough, "window": window_of(hour), "trips": trips, **sums}
        producer.produce(TAXI_BOROUGH_STATS.name, json.dumps(row), f"{borough} {hour}")


def window_of(hour: int) -> dict[str, str]:
    """The window of an hour after START."""
    return {end: f"{START + timedelta(hours=hour + after):%Y-%m-%dT%H:%M:%SZ}" for end, after in (("start", 0), ("end", 1))}


if __name__ == "__main__":
    main()
