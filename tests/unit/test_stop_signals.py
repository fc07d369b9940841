"""A stop that is asked for by a signal."""

import signal
import subprocess
import sys

import psutil
import pytest

from contract.process.stop_signals import stop_requested


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_either_signal_asks_for_the_stop_and_ends_nothing(number):
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        stop = stop_requested()
        assert not stop.is_set()
        signal.raise_signal(number)
        assert stop.is_set()
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_while_there_is_nothing_to_finish_either_ends_the_program_and_its_children_at_once(number):
    code = """
import subprocess, sys, time
from contract.process.stop_signals import end_at_once
end_at_once()
child = subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as program:
        child = psutil.Process(int(program.stdout.readline()))
        program.send_signal(number)
        assert program.wait() == 0
    child.wait()
