"""How far a learner is, told to the trainer by those who have joined: `streamgauge workshop join`. The trainer's page is in room_page.py."""

import re
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING
from uuid import uuid4

import orjson

from infrastructure.errors import StreamgaugeError
from infrastructure.storage.paths import write_whole
from infrastructure.text import printable, without_credentials
from streamgauge.workshop import labs

if TYPE_CHECKING:
    import httpx2

JOINED = labs.MINE / "room.json"
MAX_NAME = 30
LEARNER_HEADER = "Streamgauge-Learner"
"""Tells learners apart, whatever they call themselves."""
_SECONDS = 2
"""How long a check waits for the trainer's machine."""
_MAX_ERROR_CHARACTERS = 200


@dataclass(frozen=True)
class Joined:
    """What JOINED holds. learner: a random id. is_leaving: `leave` has not reached the trainer's server yet."""

    url: str
    name: str
    learner: str
    is_leaving: bool = False


def join(url: str, name: str) -> None:
    """Tells the trainer's server who is here, and `report` from now on how far.

    Raises StreamgaugeError if it cannot be reached or refuses, as it does for a name that another learner has.
    """
    if not is_name(name):
        msg = f"expected a name or number of at most {MAX_NAME} printable characters, found {name!r}"
        raise StreamgaugeError(msg)
    before = _joined()
    joined = Joined(url, name, before.learner if before else uuid4().hex)
    _send("PUT", joined)
    write_whole(JOINED, orjson.dumps(asdict(joined)))


def leave() -> str | None:
    """Takes the learner off the page. Returns the trainer's address; None if nobody had joined.

    Raises StreamgaugeError if the server cannot be reached: then `report` tells it no more, and a second call tries again.
    """
    joined = _joined()
    if joined is None:
        return None
    write_whole(JOINED, orjson.dumps(asdict(replace(joined, is_leaving=True))))
    _send("DELETE", joined)
    JOINED.unlink()
    return joined.url


def report(number: int, passed: int = 0, total: int = 0) -> None:
    """Tells the trainer's server, if this learner has joined one, how many checks of a lab pass.

    Raises StreamgaugeError if it cannot be reached or refuses.
    """
    joined = _joined()
    if joined is not None and not joined.is_leaving:
        _send("PUT", joined, lab=number, passed=passed, total=total)


def is_name(text: str) -> bool:
    """Whether the page takes it for a learner's name."""
    return 0 < len(text) <= MAX_NAME and text.isprintable() and text.strip() == text


def is_learner(text: str) -> bool:
    """Whether it is an id that `join` makes."""
    return re.fullmatch("[0-9a-f]{32}", text) is not None


def _joined() -> Joined | None:
    try:
        joined = Joined(**orjson.loads(JOINED.read_bytes()))
    except (FileNotFoundError, TypeError, ValueError):  # or it was written by another program, as below
        return None
    return joined if all(isinstance(text, str) for text in (joined.url, joined.name, joined.learner)) else None


def _send(method: str, joined: Joined, **more: int) -> None:
    import httpx2

    from infrastructure.web.client import client, reason

    done = [lab.number for lab in labs.all_labs() if lab.state == "done"]
    progress = {"done": done, **more} if method == "PUT" else None
    try:
        with client(connect=_SECONDS, silence=_SECONDS) as trainer:
            address, who = f"{joined.url.rstrip('/')}/learner", {LEARNER_HEADER: joined.learner}
            answer = trainer.request(method, address, params={"name": joined.name}, headers=who, json=progress)
            answer.raise_for_status()
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        why = (isinstance(error, httpx2.HTTPStatusError) and _error_in(error.response)) or reason(error)
        msg = f"cannot tell the trainer's page at {without_credentials(joined.url)}: {why}"
        raise StreamgaugeError(msg) from error


def _error_in(answer: "httpx2.Response") -> str:
    """What the trainer's server says of a request that it refuses. Empty if it says nothing, or is another server."""
    try:
        return printable(str(orjson.loads(answer.content)["error"]))[:_MAX_ERROR_CHARACTERS]
    except (ValueError, TypeError, KeyError):
        return ""
