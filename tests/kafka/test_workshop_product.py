"""The labs in which Kafka runs: what the README shows is what the commands print, and the last check is what the audit finds."""

import os
import re
import shlex
import shutil
import subprocess

import psutil
import pytest
from kills import kill_in_a_batch
from messages import absent
from plain import START, one_camera, write_topic
from running import environment, few_rows, one_line_error, streamgauge, streamgauge_process, succeed

from contract.checkpoints.contents import Checkpoint
from contract.checkpoints.names import checkpoints
from pipeline.domains import nest
from streamgauge.demo.background import pid_file
from streamgauge.workshop import grader, own_domain
from streamgauge.workshop.grading import grade
from streamgauge.workshop.labs import lab_of

STREAM, KILL, OWN = lab_of(3), lab_of(5), lab_of(12)
MADE = re.compile(r"^```sh\n(cat > .*?END\n)(streamgauge .*?)\n```", re.DOTALL | re.MULTILINE)
SHOWN = re.compile(r"^```console\n\$ streamgauge (.*?)\n(.*?)```", re.DOTALL | re.MULTILINE)


pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture
def workshop(fresh, tmp_path, monkeypatch):
    """Runs `streamgauge workshop` in a folder with the solution of both labs; checks run in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(grader, "graded", lambda lab, *_: grade(lab, lab.exercise.absolute()))
    monkeypatch.setattr(nest, "camera_stats", nest.camera_stats)  # and puts it back at the end
    for lab in (STREAM, KILL):
        lab.start()
        solve(lab)
    return lambda *arguments: streamgauge("workshop", *map(str, arguments), settings=fresh)


def solve(lab):
    shutil.copy(lab.folder / "solution.py", lab.exercise)


def pattern(text):
    """Of an output in which `...` stands for any text, and alone on a line for any lines."""
    parts = [r"(?:.*\n)*" if line == "..." else rf"{'.*'.join(map(re.escape, line.split('...')))}\n" for line in text.splitlines()]
    return re.compile("".join(parts))


@pytest.mark.usefixtures("workshop")
def test_what_the_first_stream_prints_is_what_the_readme_says(fresh):
    STREAM.reset()
    text = (STREAM.folder / "README.md").read_text().split("## Task")[0]
    [(file, produce)] = MADE.findall(text)
    subprocess.run(["bash", "-c", file], check=True)
    succeed(*shlex.split(produce)[1:], settings=fresh)
    shown = SHOWN.findall(text)
    assert [command.split()[0] for command, _ in shown] == ["workshop", "records", "workshop", "report", "verify", "why"]
    for command, output in shown[1:]:
        done = streamgauge(*shlex.split(command), settings=fresh)
        printed = "".join(f"{line.rstrip()}\n" for line in (done.stderr + done.stdout).splitlines() if line.strip())
        assert pattern("\n".join(line for line in output.splitlines() if line.strip())).fullmatch(printed), (
            f"{command}\nshould print:\n{output}\nand printed:\n{printed}"
        )


def test_the_audit_judges_the_function_that_has_run(workshop, fresh):
    sightings = [one_camera("cam-1", START)] * 2
    write_topic(fresh, "nest-logs", sightings, key=b"home")
    assert absent(workshop("check", 3).stdout, "check 4 of 4 fails", "it has not run", "`streamgauge workshop run 3`") == []

    shutil.copy(STREAM.folder / "exercise.py", STREAM.exercise)
    assert workshop("run", 3, "--once").returncode == 0
    solve(STREAM)
    assert absent(workshop("check", 3).stdout, "another version of it has run", "recount from the start") == []
    assert workshop("run", 3, "--once").returncode == 0
    told = workshop("check", 3)
    assert told.returncode == 1
    assert (
        absent(told.stdout, "The audit finds every row right.", "came:      nest-camera-stats: 1 of 1 rows are wrong", "streamgauge why")
        == []
    )

    succeed("reset", "nest-camera-stats", "--yes", settings=fresh)
    assert workshop("run", 3, "--once").returncode == 0
    assert "lab 3: all 4 checks pass" in workshop("check", 3).stdout


def test_a_kill_is_asked_for_and_the_audit_counts_after_it(workshop, fresh):
    write_topic(fresh, "nest-logs", [one_camera(f"cam-{number}", START) for number in range(200)])
    assert absent(workshop("check", 5).stdout, "check 6 of 6 fails", "no query that was killed") == []

    def is_in_a_batch():
        place = next((place for place in checkpoints(fresh) if place.name.query == "nest-camera-stats"), None)
        found = place and Checkpoint(place.folder)
        return bool(found and found.planned and found.planned[-1] > found.last_committed)

    kill_in_a_batch(["nest-camera-stats"], is_in_a_batch, fresh)
    succeed("run", "nest-camera-stats", "--once", settings=fresh)
    assert "lab 5: all 6 checks pass" in workshop("check", 5).stdout


def test_a_domain_of_ones_own_is_produced_counted_and_audited(workshop, fresh_registry):
    # The copy's `up` would start servers of its own.
    servers = {"KAFKA_BOOTSTRAP_SERVERS": fresh_registry.bootstrap_servers, "SCHEMA_REGISTRY_URL": fresh_registry.registry_url}
    OWN.start()
    solve(OWN)

    assert absent(workshop("check", 12).stdout, "check 8 of 8 fails", "it has not run", "`streamgauge workshop run 12`") == []
    own_domain._make_copy(OWN)  # which knows the domain before its query runs
    for arguments in ("up", "produce bike --limit 300 --duplicates 0.1 --corrupt 0.1"):
        command = [OWN.exercise.with_name("streamgauge"), *shlex.split(arguments)]
        subprocess.run(command, env=environment(fresh_registry, **servers), check=True)
    done = streamgauge_process("workshop", "run", "12", "--once", settings=few_rows(fresh_registry), **servers)
    assert done.returncode == 0, done.stderr
    assert "lab 12: all 8 checks pass" in workshop("check", 12).stdout

    key = b'{"station":"Nowhere","window":{"end":"2026-01-01T11:00:00Z","start":"2026-01-01T10:00:00Z"}}'
    write_topic(fresh_registry, "bike-station-stats", [key[:-1] + b',"trips":1,"minutes":5}'], key=key)
    assert absent(workshop("check", 12).stdout, "The audit finds every row right", "bike-station-stats: 1 of ") == []
    OWN.exercise.write_text(OWN.exercise.read_text() + "\n")
    assert "another version of it has run" in workshop("check", 12).stdout


def test_a_domain_that_is_not_written_yet_does_not_run(workshop):
    OWN.start()
    assert "ends with NotImplementedError: describe the two queries" in one_line_error(workshop("run", 12))


@pytest.mark.usefixtures("workshop")
def test_the_files_of_a_running_demo_do_not_change(fresh):
    OWN.start()
    solve(OWN)
    pid_file(fresh).write(os.getpid(), psutil.Process().cmdline()[0])
    assert "a demo is running in" in one_line_error(streamgauge_process("workshop", "run", "12", "--once", settings=fresh))
    assert list(OWN.exercise.parent.iterdir()) == [OWN.exercise]


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("def camera_stats(:", "ends with SyntaxError"),
        ("def other(): ...", "has no `camera_stats`, which the original has"),
    ],
)
def test_a_file_that_the_product_cannot_run_is_one_line(workshop, code, told):
    STREAM.exercise.write_text(code)
    assert told in one_line_error(workshop("run", 3))


def test_a_lab_without_code_for_the_product_is_refused(workshop):
    assert "lab 5 has no code that the product runs; labs 2, 3 and 12 have" in one_line_error(workshop("run", 5))
