"""Settings of all programs, read from the environment and a file."""

from infrastructure.settings.settings import Settings

__all__ = ["Settings"]
