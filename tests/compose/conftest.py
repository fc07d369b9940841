"""The stack, for all tests of this folder."""

import shutil
from collections.abc import Iterator

import pytest
from composed import DOWN_SECONDS, UP_SECONDS, Stack
from running import free_ports


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """The stack as `docker compose up` starts it, healthy; it is taken down in the end, whatever happens."""
    if shutil.which("docker") is None:
        pytest.skip("there is no docker on this machine")
    up = Stack(*free_ports(4))
    done = up.compose("up", "--build", "--detach", "--wait", seconds=UP_SECONDS)
    try:
        if done.returncode != 0:
            pytest.fail(f"{done.stderr[-3000:]}\n{up.compose('ps', '--all').stdout}\n{up.compose('logs', '--tail', '15').stdout}")
        yield up
    finally:
        up.compose("--profile", "*", "down", "--volumes", seconds=DOWN_SECONDS)
