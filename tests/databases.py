"""Real databases: a PostgreSQL server of the worker's own on a free port, and SQLite files."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

PASSWORD = "a-secret-that-nobody-may-see"
BINARIES = max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), default=None)


class Postgres:
    """A cluster whose users authenticate by password. The server does not run as root, which PostgreSQL refuses."""

    def __init__(self, port: int) -> None:
        self.port, self._databases = port, 0
        self._user = "postgres" if os.getuid() == 0 else None
        self._folder = Path(tempfile.mkdtemp(prefix="streamgauge-postgres-"))  # every user may enter the folder above it
        if self._user:
            shutil.chown(self._folder, self._user)
        password = self._folder / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        self._run("initdb", "--username=app", f"--pwfile={password}", "--auth=scram-sha-256", "--no-sync")

    def start(self):
        options = f"-p {self.port} -k {self._folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        self._run("pg_ctl", "--wait", f"--log={self._folder}/log", f"--options={options}", "start")

    def stop(self):
        self._run("pg_ctl", "--wait", "--mode=immediate", "stop")

    def remove(self):
        self.stop()
        shutil.rmtree(self._folder)

    def new_database(self, encoding: str = "UTF8", **settings: str) -> str:
        """The URL of an empty database with those settings for each session."""
        self._databases += 1
        name = f"test_{self._databases}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"create database {name} encoding '{encoding}' locale 'C' template template0")
            for setting, value in settings.items():
                connection.execute(f"alter database {name} set {setting} to {value}")
        return self.url(name)

    def url(self, database: str, user: str = "app", password: str = PASSWORD) -> str:
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}"

    def _run(self, program: str, *arguments: str) -> None:
        # pg_ctl's server keeps what it inherits, so no pipe.
        with (self._folder.parent / f"{self._folder.name}.out").open("w+") as out:
            command = [BINARIES / program, f"--pgdata={self._folder}/data", *arguments]
            done = subprocess.run(command, check=False, cwd="/", user=self._user, stdout=out, stderr=out)
            out.seek(0)
            assert done.returncode == 0, out.read()
        Path(out.name).unlink()


@contextmanager
def running_postgres(port: int) -> Iterator[Postgres]:
    server = Postgres(port)
    server.start()
    try:
        yield server
    finally:
        server.remove()
