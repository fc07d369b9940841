"""Downloads a month of TLC's trip records once into the cache."""

from pathlib import Path

import httpx2
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from infrastructure.errors import StreamgaugeError
from infrastructure.storage.downloads import draft_of, sha256
from infrastructure.web.client import client, reason

TLC_URL = "https://d37ci6vzurychx.cloudfront.net/trip-data"
"""Where TLC publishes its trip records."""

_OTHER_SOURCES = "use a local file with --file, or leave out --month for the simulation"


def fetch_month(month: str, cache: Path, console: Console, *, url: str = TLC_URL) -> Path:
    """The Parquet file of `month` ("2024-03") in the folder `cache`/taxi, downloaded if it is missing or has changed since.

    Raises StreamgaugeError for a month that TLC does not have, a missing network, a response that is not Parquet, or a full disk. No
    partial file stays in the cache.
    """
    path = cache / "taxi" / f"green_tripdata_{month}.parquet"
    source = f"{url}/{path.name}"
    known = path.with_suffix(".sha256")
    try:
        if path.exists() and known.exists() and sha256(path).encode() != known.read_bytes():
            console.print(f"{path} has changed since it was fetched, and is fetched again", soft_wrap=True)
            path.unlink()
        if not path.exists():
            known.unlink(missing_ok=True)
            with console.status(f"fetching {source}"), draft_of(path) as draft:
                _download(source, draft)
        if not known.exists():
            known.write_text(sha256(path))
    except httpx2.HTTPError as error:
        msg = f"could not fetch {source} ({reason(error)}); TLC publishes a month about two months after its end: try again, or another --month, {_OTHER_SOURCES}"
        raise StreamgaugeError(msg) from error
    except pa.ArrowInvalid as error:
        msg = f"{source} did not return a Parquet file, perhaps because of a proxy or login page; try again, {_OTHER_SOURCES}"
        raise StreamgaugeError(msg) from error
    except OSError as error:
        msg = f"could not write {path}: {error.strerror}; free some space, or choose another folder with STREAMGAUGE_CACHE"
        raise StreamgaugeError(msg) from error
    return path


def _download(url: str, path: Path) -> None:
    """Writes `path`. Raises pa.ArrowInvalid if that is not a Parquet file."""
    with client() as web:
        answer = web.get(url).raise_for_status()
    path.write_bytes(answer.content)
    pq.read_metadata(path)
