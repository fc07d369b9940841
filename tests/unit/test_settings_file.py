"""Settings from a file: what it may hold, that the environment goes before it, and one clear error for what cannot be used."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from documents import ROOT
from messages import refused
from running import forget_surroundings, streamgauge

from infrastructure.settings import Settings
from streamgauge.demo.services import children

SECRETS = [
    ("database_url", "postgresql://me:s3cret@127.0.0.1/results"),
    ("alert_webhook_url", "https://chat.example/s3cret"),
    ("maven_url", "https://me:s3cret@maven.example"),
]


@pytest.fixture
def read(tmp_path):
    """Reads the settings of a file with this text, below these variables."""
    file = tmp_path / "own.toml"

    def settings(text, mode=0o600, **variables):
        file.unlink(missing_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        file.chmod(mode)
        return Settings.from_environment({"STREAMGAUGE_CONFIG": str(file), **variables})

    return settings


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory with a file `streamgauge.toml`, as a process finds it whose environment has no settings."""
    monkeypatch.setattr(os, "environ", {})
    monkeypatch.chdir(tmp_path)
    return Path("streamgauge.toml")


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("kafka_port = 9192", "kafka_port", 9192),
        ("kafka_port = '9192'", "kafka_port", 9192),
        ("trigger_seconds = 0.5", "trigger_seconds", 0.5),
        ("trigger_seconds = 3", "trigger_seconds", 3.0),
        ("latest_first = true", "latest_first", True),
        ("home = '/data'", "home", Path("/data")),
        ("lake_uri = 's3a://bucket/lake'", "lake_uri", "s3a://bucket/lake"),
        ("kafka_bootstrap_servers = 'kafka:9092'", "kafka_bootstrap_servers", "kafka:9092"),
        ("owner = 'me'", "owner_name", "me"),
        ("\ufeffcrowd = 5\r\n", "crowd", 5),
        ("watermark = ''", "watermark", Settings().watermark),
        ("", "watermark", Settings().watermark),
    ],
)
def test_a_key_is_the_variable_in_lower_case_without_the_prefix_and_its_value_is_of_toml(read, text, name, value):
    assert getattr(read(text), name) == value


def test_the_environment_goes_before_the_file_unless_it_is_empty(read):
    settings = read("crowd = 5\nrestart_limit = 6", STREAMGAUGE_CROWD="7", STREAMGAUGE_RESTART_LIMIT="")
    assert (settings.crowd, settings.restart_limit) == (7, 6)


def test_the_file_of_the_working_directory_is_read_unless_another_is_named(here, tmp_path):
    here.write_text("crowd = 5")
    assert Settings.from_environment().crowd == 5
    (tmp_path / "other.toml").write_text("restart_limit = 6")
    os.environ["STREAMGAUGE_CONFIG"] = str(tmp_path / "other.toml")
    assert (Settings.from_environment().crowd, Settings.from_environment().restart_limit) == (Settings().crowd, 6)


def test_a_process_that_is_given_settings_reads_no_file(here, tmp_path):
    here.write_text("crowd = 5\nmax_files_per_trigger = 6")
    demo = Settings(home=tmp_path / "home", real_time="off")
    for child in children(demo, figures=None, dashboard=True):
        os.environ.clear()
        os.environ |= child.environment
        settings = Settings.from_environment()
        assert (settings.crowd, settings.max_files_per_trigger) == (demo.crowd, None), child.name
    forget_surroundings()
    assert Settings.from_environment() == Settings()


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("kafka_prot = 1", ("kafka_prot", "did you mean kafka_port?")),
        ("STREAMGAUGE_KAFKA_PORT = 1", ("STREAMGAUGE_KAFKA_PORT", "did you mean kafka_port?")),
        ("[kafka]\nport = 1", ("kafka is not a setting", "did you mean kafka_port?")),
        ("config = 'other.toml'", ("config is not a setting",)),
        ('"\\u001b[2J" = 1', ("\N{REPLACEMENT CHARACTER}[2J is not a setting",)),
        ("kafka_port = 'kafka'", ("kafka_port is 'kafka'", "expected a port, 1 to 65535")),
        ("kafka_port = 65536", ("kafka_port is 65536", "expected a port")),
        ("kafka_port = 92.5", ("kafka_port is 92.5", "expected a port")),
        ("kafka_port = [9092]", ("kafka_port is [9092]", "expected a port")),
        ("latest_first = 1", ("latest_first is 1", "expected true or false")),
        ("aws_region = true", ("aws_region is true", "expected text")),
        ("watermark = 10", ("watermark is 10", "expected a duration")),
        ("home = ['a']", ("home is ['a']", "expected a path")),
        ('home = "a\\nb"', (r"home is 'a\nb'", "expected a path")),
        ("aws_endpoint_url = 'https://me:s3cret@store'", ("aws_endpoint_url is '***@store'", "without a name and password")),
        ("crowd = 1\nhome =", ("is not TOML", "line 2")),
        ("crowd = 1\ncrowd = 2", ("is not TOML", "line 2")),
        ("crowd = 1\n\nhome = data\n", ("is not TOML", "line 3")),
        (f"crowd = {'9' * 5_000}", ("is not TOML", "digits")),
        (f"crowd = {'[' * 5_000}", ("is not TOML", "recursion")),
        (b"crowd = 1\nhome = '\xff'\n", ("is not UTF-8", "line 2")),
    ],
)
def test_what_cannot_be_used_is_one_line_with_the_file_and_what_was_expected(read, tmp_path, text, facts):
    with refused(str(tmp_path / "own.toml"), *facts) as error:
        read(text)
    assert str(error.value).isprintable()
    assert "s3cret" not in str(error.value)


def test_a_file_that_is_named_has_to_be_there(tmp_path):
    for file, reason in ((tmp_path / "none.toml", "No such file"), (tmp_path, "Is a directory")):
        with refused(f"STREAMGAUGE_CONFIG={file}", reason):
            Settings.from_environment({"STREAMGAUGE_CONFIG": str(file)})
    with refused("STREAMGAUGE_CONFIG is ", "a path"):
        Settings.from_environment({"STREAMGAUGE_CONFIG": "a\nb"})


def test_a_file_of_the_working_directory_that_cannot_be_read_is_named(here):
    here.mkdir()
    with refused("streamgauge.toml cannot be read", "Is a directory"):
        Settings.from_environment()


@pytest.mark.skipif(os.geteuid() != 0, reason="not possible on this machine: only root can give a file to another user")
def test_a_file_of_the_working_directory_that_belongs_to_another_user_is_refused_unless_it_is_named(here):
    here.write_text("crowd = 5")
    os.chown(here, 4711, -1)
    with refused("streamgauge.toml can be written by another user", "STREAMGAUGE_CONFIG"):
        Settings.from_environment()
    os.environ["STREAMGAUGE_CONFIG"] = str(here)
    assert Settings.from_environment().crowd == 5


def test_a_file_of_the_working_directory_that_everybody_can_write_is_refused(here):
    here.write_text("crowd = 5")
    here.chmod(0o666)
    with refused("streamgauge.toml can be written by another user", "chmod o-w"):
        Settings.from_environment()


@pytest.mark.parametrize(("key", "secret"), SECRETS)
def test_a_secret_is_in_a_file_that_others_cannot_read(read, key, secret):
    assert getattr(read(f"{key} = '{secret}'", mode=0o640), key) == secret
    for mode in (0o644, 0o444):
        with refused(f"{key} is a secret", "chmod o-r ") as error:
            read(f"{key} = '{secret}'", mode=mode)
        assert "s3cret" not in str(error.value)
    assert read("crowd = 5", mode=0o644).crowd == 5


@pytest.mark.parametrize(
    ("function", "answer"),
    [
        pytest.param("statvfs", lambda _: SimpleNamespace(f_flag=os.ST_RDONLY), id="on a read-only file system"),
        pytest.param("geteuid", lambda: 4711, id="of another user"),
    ],
)
def test_a_secret_in_a_file_that_a_container_mounts_is_taken(read, monkeypatch, function, answer):
    monkeypatch.setattr(os, function, answer)
    assert read("database_url = 'postgresql://me:s3cret@127.0.0.1/results'", mode=0o444).database_url


@pytest.mark.parametrize(
    ("variable", "facts"),
    [
        ("STREAMGAUGE_KAFKA_PROT", ("STREAMGAUGE_KAFKA_PROT is not a setting", "did you mean STREAMGAUGE_KAFKA_PORT?")),
        ("STREAMGAUGE_NOTHING_OF_OURS", ("STREAMGAUGE_NOTHING_OF_OURS is not a setting",)),
    ],
)
def test_a_variable_with_the_prefix_that_is_not_a_setting_is_refused_unless_it_is_empty(variable, facts):
    with refused(*facts):
        Settings.from_environment({variable: "9093"})
    assert Settings.from_environment({variable: ""}) == Settings()


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("STREAMGAUGE_PORT", "tcp://10.0.0.1:8501"),
        ("STREAMGAUGE_KAFKA_PORT", "tcp://10.0.0.1:9092"),
        ("STREAMGAUGE_KAFKA_PORT", "sctp://10.0.0.1:9092"),
        ("STREAMGAUGE_KAFKA_SERVICE_HOST", "10.0.0.1"),
        ("STREAMGAUGE_SERVICE_PORT_HTTP", "8501"),
        ("STREAMGAUGE_PORT_8501_TCP_ADDR", "10.0.0.1"),
        ("STREAMGAUGE_SPARK_WEB_PORT", "8080"),
    ],
)
def test_variables_of_kubernetes_and_of_the_compose_file_are_none_of_ours(variable, text):
    assert Settings.from_environment({variable: text}) == Settings()


def test_the_file_of_the_documentation_is_valid(read):
    (example,) = (block.split("```")[0] for block in (ROOT / "docs/settings.md").read_text().split("```toml\n")[1:])
    settings = read(example)
    assert (settings.kafka_port, settings.shared_home, settings.watermark) == (9192, True, "30 minutes")


@pytest.mark.parametrize(("text", "has_traceback"), [("debug = true", True), ("", False)])
def test_the_traceback_can_be_asked_for_in_the_file(tmp_path, text, has_traceback):
    file = tmp_path / "own.toml"
    file.write_text(text)
    done = streamgauge("logs", "nothing", settings=Settings(home=tmp_path), STREAMGAUGE_CONFIG=str(file), STREAMGAUGE_DEBUG="")
    assert ("Traceback" in done.stderr) == has_traceback, done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: ")
