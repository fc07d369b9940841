"""Files in the cache: each is whole or not there, and a download is known by its SHA-256."""

import hashlib
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ABANDONED_SECONDS = 3600
"""A draft that was not written to for so long is of a program that was killed."""


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """The path of a draft, which replaces `path` at the end of the block. If the block raises an error, it is deleted. Raises OSError.

    Deletes the abandoned drafts of earlier programs in the same folder.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for old_draft in path.parent.glob("*.draft"):
        with suppress(FileNotFoundError):  # another program has deleted it
            if old_draft.stat().st_mtime < time.time() - ABANDONED_SECONDS:
                old_draft.unlink()
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}.draft")
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
