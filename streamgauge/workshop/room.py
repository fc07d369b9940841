"""How far a learner is, told to the trainer by those who have joined: `streamgauge workshop join`. The trainer's page is in room_page.py."""

import orjson

from contract.errors import StreamgaugeError
from contract.storage.paths import write_whole
from contract.text import without_credentials
from streamgauge.workshop import labs

JOINED = labs.MINE / "room.json"
MAX_NAME = 30
_SECONDS = 2
"""How long a check waits for the trainer's machine."""


def join(url: str, name: str) -> None:
    """Tells the trainer's server who is here, and `report` from now on how far. Raises StreamgaugeError if it cannot be reached or refuses."""
    if not is_name(name):
        msg = f"expected a name or number of at most {MAX_NAME} printable characters, found {name!r}"
        raise StreamgaugeError(msg)
    _send("PUT", url, name)
    write_whole(JOINED, orjson.dumps([url, name]))


def leave() -> str | None:
    """Takes the learner off the page. Returns the trainer's address; None if nobody had joined."""
    joined = _joined()
    if joined is None:
        return None
    JOINED.unlink()
    _send("DELETE", *joined)
    return joined[0]


def report(number: int, passed: int = 0, total: int = 0) -> None:
    """Tells the trainer's server, if this learner has joined one, how many checks of a lab pass.

    Raises StreamgaugeError if it cannot be reached or refuses.
    """
    if joined := _joined():
        _send("PUT", *joined, lab=number, passed=passed, total=total)


def is_name(text: str) -> bool:
    """Whether the page takes it for a learner's name."""
    return 0 < len(text) <= MAX_NAME and text.isprintable() and text.strip() == text


def _joined() -> tuple[str, str] | None:
    try:
        url, name = orjson.loads(JOINED.read_bytes())
    except (FileNotFoundError, ValueError):  # or it was written by another program
        return None
    return url, name


def _send(method: str, url: str, name: str, **more: int) -> None:
    import httpx2

    from contract.web.client import client, reason

    done = [lab.number for lab in labs.all_labs() if lab.state == "done"]
    progress = {"done": done, **more} if method == "PUT" else None
    try:
        with client(connect=_SECONDS, silence=_SECONDS) as trainer:
            trainer.request(method, f"{url.rstrip('/')}/learner", params={"name": name}, json=progress).raise_for_status()
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        msg = f"cannot tell the trainer's page at {without_credentials(url)}: {reason(error)}"
        raise StreamgaugeError(msg) from error
