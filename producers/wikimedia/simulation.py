"""Changes of simulated wikis in the format of Wikimedia's stream, with its irregularities. The same seed and start give the same bytes."""

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Any
from urllib.parse import quote

import orjson

from producers.delivery.events import MS_PER_SECOND

# Database name, domain, weight, share of bots: roughly as in reality.
_WIKIS = (
    ("wikidatawiki", "www.wikidata.org", 30, 0.55),
    ("commonswiki", "commons.wikimedia.org", 25, 0.40),
    ("enwiki", "en.wikipedia.org", 16, 0.10),
    ("frwiki", "fr.wikipedia.org", 5, 0.12),
    ("dewiki", "de.wikipedia.org", 5, 0.08),
    ("eswiki", "es.wikipedia.org", 4, 0.10),
    ("ruwiki", "ru.wikipedia.org", 4, 0.15),
    ("jawiki", "ja.wikipedia.org", 3, 0.05),
    ("arwiki", "ar.wikipedia.org", 3, 0.60),
    ("svwiki", "sv.wikipedia.org", 2, 0.50),
    ("cebwiki", "ceb.wikipedia.org", 2, 0.90),
    ("enwiktionary", "en.wiktionary.org", 1, 0.40),
)
_NAMESPACES = ((0, "", 80), (1, "Talk:", 6), (2, "User:", 5), (4, "Project:", 4), (14, "Category:", 5))
_TYPES = ("edit", "categorize", "log", "new", "142")
_TYPE_WEIGHTS = (62, 22, 11, 4.7, 0.3)
_LOGS: tuple[tuple[str, str, Any], ...] = (
    ("upload", "upload", {"img_sha1": "f00", "img_timestamp": "20260101000000"}),
    ("patrol", "patrol", {"curid": 12, "previd": 11, "auto": 1}),
    ("block", "block", {"duration": "31 hours", "flags": "nocreate"}),
    ("delete", "delete", []),
    ("newusers", "create", ""),
)
_PAGES_PER_WIKI = 2000
_WITHOUT_ID, _WITHOUT_PATROLLED = 0.002, 0.7


@dataclass(frozen=True)
class Simulation:
    """All inputs of the simulated changes.

    start: time of the first change, UTC. seconds_between: event time between changes. limit: number of changes, None: endless.
    """

    start: datetime
    seed: int = 0
    seconds_between: float = 0.02
    limit: int | None = None


def simulate(simulation: Simulation) -> Iterator[bytes]:
    """The changes of `simulation` as JSON, in order of time."""
    start_ms = round(simulation.start.timestamp() * MS_PER_SECOND)
    world = _World(simulation.seed, start_ms)
    for number in count() if simulation.limit is None else range(simulation.limit):
        yield orjson.dumps(world.change(number, start_ms + int(number * simulation.seconds_between * MS_PER_SECOND)))


class _World:
    """All wikis, with the current length of each page."""

    def __init__(self, seed: int, start_ms: int) -> None:
        # The start is part of the seed, so that another run generates other ids.
        self._rng = random.Random(f"wikimedia {seed} {start_ms}")  # noqa: S311 - a simulation, no secret
        self._wiki_weights = [weight for _, _, weight, _ in _WIKIS]
        self._namespace_weights = [weight for _, _, weight in _NAMESPACES]
        self._lengths: dict[tuple[str, str], int] = {}

    def change(self, number: int, now_ms: int) -> dict[str, Any]:
        rng = self._rng
        wiki, domain, _, bots = rng.choices(_WIKIS, self._wiki_weights)[0]
        kind = rng.choices(_TYPES, _TYPE_WEIGHTS)[0]
        namespace, prefix, _ = rng.choices(_NAMESPACES, self._namespace_weights)[0]
        if kind == "categorize":
            namespace, prefix = 14, "Category:"
        # Some pages are edited far more often than others.
        title = f"{prefix}Page {int(_PAGES_PER_WIKI * rng.random() ** 3)}"
        is_bot = rng.random() < bots
        event = {
            "$schema": "/mediawiki/recentchange/1.0.0",
            "meta": _meta(rng, domain, title, number, now_ms),
            "id": 3_000_000_000 + number,
            "type": int(kind) if kind.isdecimal() else kind,
            "namespace": namespace,
            "title": title,
            "title_url": f"https://{domain}/wiki/{quote(title)}",
            "comment": "a simulated change",
            "timestamp": now_ms // MS_PER_SECOND,
            "user": f"{'Bot' if is_bot else 'Editor'} {int(500 * rng.random() ** 2)}",
            "bot": is_bot,
            "server_url": f"https://{domain}",
            "server_name": domain,
            "server_script_path": "/w",
            "wiki": wiki,
            "parsedcomment": "a simulated change",
        }
        if rng.random() < _WITHOUT_ID:
            del event["id"]
        return event | self._of_type(kind, wiki, title, number, domain)

    def _of_type(self, kind: str, wiki: str, title: str, number: int, domain: str) -> dict[str, Any]:
        rng = self._rng
        if kind == "log":
            log_type, action, parameters = rng.choice(_LOGS)
            return {"log_id": number, "log_type": log_type, "log_action": action, "log_params": parameters, "log_action_comment": action}
        if kind not in {"edit", "new"}:
            return {}
        old = None if kind == "new" else self._lengths.get((wiki, title), 500 + int(20_000 * rng.random() ** 2))
        new = max(0, (old or 0) + int(rng.gauss(40, 300)))
        self._lengths[wiki, title] = new
        revision = 1_300_000_000 + number
        return {
            "minor": rng.random() < 0.2,  # noqa: PLR2004 - a share
            "length": {"new": new} if old is None else {"old": old, "new": new},
            "revision": {"new": revision} if old is None else {"old": revision - 1, "new": revision},
            "notify_url": f"https://{domain}/w/index.php?diff={revision}",
        } | ({} if rng.random() < _WITHOUT_PATROLLED else {"patrolled": rng.random() < 0.5})  # noqa: PLR2004 - a share


def _meta(rng: random.Random, domain: str, title: str, number: int, now_ms: int) -> dict[str, Any]:
    return {
        "uri": f"https://{domain}/wiki/{quote(title)}",
        "request_id": str(uuid.UUID(int=rng.getrandbits(128), version=4)),
        "id": str(uuid.UUID(int=rng.getrandbits(128), version=4)),
        "dt": f"{datetime.fromtimestamp(now_ms / MS_PER_SECOND, UTC):%Y-%m-%dT%H:%M:%S}.{now_ms % MS_PER_SECOND:03}Z",
        "domain": domain,
        "stream": "mediawiki.recentchange",
        "topic": "eqiad.mediawiki.recentchange",
        "partition": 0,
        "offset": 5_000_000_000 + number,
    }
