"""A key distribution center of the tests' own: a realm, principals, keytabs, tickets."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from streamgauge.platform.processes import GuardedProcess

REALM = "STREAMGAUGE.TEST"
PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit", "klist")
_PATHS = os.environ["PATH"] + ":/usr/sbin"


def missing() -> list[str]:
    """The programs of MIT Kerberos that are not here."""
    return [program for program in PROGRAMS if shutil.which(program, path=_PATHS) is None]


def whole_java() -> Path | None:
    """The home of a Java 17 or 21 with Kerberos, where Debian or JAVA_HOME have one; None if there is none."""
    homes = [Path(os.environ.get("JAVA_HOME", "/none")), *sorted(Path("/usr/lib/jvm").glob("*"))]
    for home in homes:
        told = (home / "release").read_text() if (home / "release").exists() else ""
        if "jdk.security.jgss" in told and re.search(r'JAVA_VERSION="(?:17|21)\b', told):
            return home
    return None


class Kdc:
    """The center, on loopback at `port`, with all it keeps in `folder`."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.config = folder, folder / "krb5.conf"
        self.config.write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n rdns = false\n"
            f" dns_canonicalize_hostname = false\n udp_preference_limit = 1\n"
            f"[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{port}\n }}\n"
        )
        (folder / "kdc.conf").write_text(
            f"[kdcdefaults]\n kdc_listen = 127.0.0.1:{port}\n kdc_tcp_listen = 127.0.0.1:{port}\n"
            f"[realms]\n {REALM} = {{\n  database_name = {folder}/principal\n  key_stash_file = {folder}/stash\n  acl_file = {folder}/acl\n }}\n"
            f"[logging]\n kdc = FILE:{folder}/kdc.log\n"
        )
        self._environment = {**os.environ, "PATH": _PATHS, "KRB5_CONFIG": str(self.config), "KRB5_KDC_PROFILE": str(folder / "kdc.conf")}
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "of the database")

    def start(self) -> GuardedProcess:
        """Starts it; who is given the process ends it."""
        program = shutil.which("krb5kdc", path=_PATHS) or ""
        return GuardedProcess.start([program, "-n", "-r", REALM], log=self.folder / "kdc.out", environment=self._environment)

    def keytab(self, name: str, *principals: str) -> Path:
        """Makes principals, and a keytab for whoever is to be them."""
        path = self.folder / f"{name}.keytab"
        for principal in principals:
            self._run("kadmin.local", "-r", REALM, "-q", f"addprinc -randkey {principal}")
            self._run("kadmin.local", "-r", REALM, "-q", f"ktadd -k {path} {principal}")
        return path

    def kinit(self, keytab: Path, principal: str, cache: Path, *options: str) -> dict[str, str]:
        """Logs `principal` in, as its user does at a shell; returns the environment of programs that use the ticket in `cache`."""
        self._run("kinit", "-c", f"FILE:{cache}", "-k", "-t", str(keytab), *options, principal)
        return {"KRB5CCNAME": f"FILE:{cache}", "KRB5_CONFIG": str(self.config)}

    def _run(self, *command: str) -> None:
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
