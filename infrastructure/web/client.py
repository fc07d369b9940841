"""The HTTP client of every request.

Certificates are checked against the authorities of this machine, or those in the file that SSL_CERT_FILE names. Requests take the proxies of
the environment, except those to this machine.
"""

from typing import Any

import httpx2

from infrastructure.web.proxies import LOOPBACK

CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 60.0
"""How long a response may pause."""
FAILURES = (httpx2.HTTPError, httpx2.InvalidURL)
"""The errors of a request: it fails, or its address is none."""
_NOT_TRUSTED = "certificate verify failed: "


def client(*, connect: float = CONNECT_SECONDS, silence: float = SILENCE_SECONDS, **options: Any) -> httpx2.Client:  # noqa: ANN401 - as httpx2 has them
    """A client that follows redirects. connect, silence: in seconds. options: more arguments of httpx2.Client."""
    direct = {f"all://{f'[{host}]' if ':' in host else host}": None for host in LOOPBACK}
    return httpx2.Client(timeout=httpx2.Timeout(silence, connect=connect), follow_redirects=True, mounts=direct, **options)


def reason(error: Exception) -> str:
    """Why a request failed, without its URL, which may hold a secret: "HTTP 503", "Connection refused"."""
    if isinstance(error, httpx2.HTTPStatusError):
        return f"HTTP {error.response.status_code}"
    text = str(error)
    if _NOT_TRUSTED in text:
        why = text.partition(_NOT_TRUSTED)[2].partition(" (_ssl.c")[0]
        return (
            f"its certificate is not trusted: {why}; add the authority to those of this machine, or set SSL_CERT_FILE to a file that has it"
        )
    return (text.partition("] ")[2] if text.startswith("[Errno") else text).rstrip(".") or type(error).__name__
