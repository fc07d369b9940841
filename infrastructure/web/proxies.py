"""The proxies of this machine, in the form that HTTP clients take."""

import os
import sys
from urllib.parse import urlsplit

from infrastructure.errors import StreamgaugeError
from infrastructure.text import without_credentials

LOOPBACK = ("127.0.0.1", "localhost", "::1")
SCHEMES = ("http", "https", "socks5", "socks5h")


def prepare_proxies() -> None:
    """Writes the proxies into the environment, for this process and its children. None of them leads to this machine.

    Raises StreamgaugeError for one that cannot be used.
    """
    if sys.platform != "darwin" and not any(name.lower().endswith("_proxy") for name in os.environ):
        return
    from urllib.request import getproxies  # slow to import

    proxies = getproxies()  # of the environment; if that has none, also of macOS
    for scheme in ("http", "https", "all"):
        if proxy := proxies.get(scheme):
            _export(f"{scheme}_proxy", _usable(proxy, f"{scheme}_proxy".upper()))
    no_proxy = proxies.get("no", "")
    if no_proxy != "*":  # which means every host, but only alone
        _export("no_proxy", ",".join(filter(None, dict.fromkeys([*no_proxy.split(","), *LOOPBACK]))))


def _usable(proxy: str, variable: str) -> str:
    scheme, separator, rest = proxy.partition("://")
    if not separator:
        scheme, rest = "http", proxy  # as curl takes it
    elif scheme == "socks":
        scheme = "socks5"  # as GNOME writes it
    url = f"{scheme}://{rest}".rstrip("/")
    try:
        is_usable = scheme in SCHEMES and bool(urlsplit(url).hostname) and urlsplit(url).port != 0
    except ValueError:  # no number for the port
        is_usable = False
    if not is_usable:
        expected = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        msg = f"{variable}={without_credentials(url)} is not a proxy that can be used; expected host and port after one of {expected}; correct or unset it"
        raise StreamgaugeError(msg)
    return url


def _export(name: str, value: str) -> None:
    os.environ[name] = os.environ[name.upper()] = value
