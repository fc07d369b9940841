"""The file in which `kinit` keeps Kerberos tickets: it must be one that all clients read, with a ticket that is valid."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from infrastructure.errors import StreamgaugeError

_VARIABLE = "KRB5CCNAME"


def check_ticket(environment: Mapping[str, str]) -> None:
    """Raises StreamgaugeError if the ticket cache has no ticket, or only an expired one. Without `klist`, looks for the file only."""
    file = _ticket_cache(environment)
    if not file.exists():
        default = "" if environment.get(_VARIABLE) else f"; if it stores tickets elsewhere (`klist`), export {_VARIABLE}=FILE:{file} first"
        msg = f"there is no Kerberos ticket in {file}, and sasl.jaas.config names no keytab; run `kinit`{default}"
        raise StreamgaugeError(msg)
    if klist := shutil.which("klist", path=environment.get("PATH")):
        listing = subprocess.run([klist, "-s", "-c", f"FILE:{file}"], env=dict(environment), capture_output=True, check=False)
        if listing.returncode:
            msg = f"the Kerberos ticket in {file} has expired, or cannot be read (`klist -c {file}`); run `kinit`"
            raise StreamgaugeError(msg)


def _ticket_cache(environment: Mapping[str, str]) -> Path:
    """The file that Java reads. It does not look into krb5.conf, and knows no other kind of cache."""
    name = environment.get(_VARIABLE) or f"/tmp/krb5cc_{os.getuid()}"  # noqa: S108 - Kerberos's default, of this user alone
    kind, colon, file = name.partition(":")
    if name.startswith("/") or not colon:
        return Path(name)
    if kind.upper() != "FILE":
        msg = f"{_VARIABLE} is {name}; expected FILE:/path, because Java reads tickets from files only: set it, and run `kinit`"
        raise StreamgaugeError(msg)
    return Path(file)
