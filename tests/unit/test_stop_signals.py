"""A stop that is asked for by a signal."""

import signal
import subprocess
import sys
import threading
from queue import SimpleQueue

import psutil
import pytest

from infrastructure.process.stop_signals import StopRequest, postponed_signals, stop_requested


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_either_signal_asks_for_the_stop_and_ends_nothing(number):
    stop = stop_requested()
    assert not stop.is_set()
    signal.raise_signal(number)
    assert stop.is_set()


def test_a_signal_that_comes_at_any_moment_of_a_wait_asks_for_the_stop():
    code = """
import signal, threading
from infrastructure.process.stop_signals import StopRequest
for _ in range(100):
    stop = StopRequest()
    signal.signal(signal.SIGUSR1, stop.on_signal)
    threading.Timer(0.001, signal.pthread_kill, [threading.main_thread().ident, signal.SIGUSR1]).start()
    while not stop.wait(0):
        pass
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_wait_ends_with_the_stop_or_its_time_in_each_thread():
    stop, ended = StopRequest(), SimpleQueue()
    assert not stop.wait(0)
    for _ in range(2):
        threading.Thread(target=lambda: ended.put(stop.wait()), daemon=True).start()
    threading.Timer(0.01, stop.set).start()
    assert stop.wait()
    assert stop.wait()
    assert [ended.get(timeout=30) for _ in range(2)] == [True, True]


@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_while_there_is_nothing_to_finish_either_ends_the_program_and_its_children_at_once(number, fails):
    code = f"""
import subprocess, sys, time
from infrastructure.process.stop_signals import end_at_once
end_at_once(fails={fails})
child = subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        child = psutil.Process(int(program.stdout.readline()))
        program.send_signal(number)
        _, said = program.communicate()
    child.wait()
    if fails:
        assert program.returncode == 128 + number
        assert said.startswith(f"error: stopped by {number.name} before everything was processed")
    else:
        assert (program.returncode, said) == (0, "")


def test_a_postponed_signal_takes_effect_after_the_block():
    reached = []
    with pytest.raises(KeyboardInterrupt):
        interrupted(reached)
    assert reached == ["the end of the block"]


def interrupted(reached):
    with postponed_signals():
        signal.raise_signal(signal.SIGINT)
        reached.append("the end of the block")
    reached.append("what follows it")
