"""Settings of all programs, read from the environment."""

from contract.settings.settings import Settings

__all__ = ["Settings"]
