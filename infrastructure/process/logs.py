"""Logs that programs write without rotating them: their output, and what a JVM prints."""

from pathlib import Path

LOG_BYTES = 10 * 1024 * 1024


def rotate(log: Path) -> None:
    """Renames a log of more than LOG_BYTES to NAME.1, which replaces the one before. Called before a program appends to it."""
    if log.exists() and log.stat().st_size > LOG_BYTES:
        log.replace(log.with_name(f"{log.name}.1"))
