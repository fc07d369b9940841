"""The settings as they are in effect, each with where it comes from."""

from collections.abc import Mapping
from dataclasses import fields

from contract.row_formats import Rows
from contract.settings import Settings
from contract.settings.sources import Given
from contract.text import without_credentials


def rows(settings: Settings, given: Mapping[str, Given]) -> Rows:
    """The value of each setting, and "environment", the path of the file, or "default". Secrets are masked. given: where `settings` come from."""
    found = []
    for setting in fields(settings):
        variable, value = setting.metadata["variable"], getattr(settings, setting.name)
        text = "" if value is None else without_credentials(str(value)) if setting.repr or not value else "***"
        found.append((variable, text, given[variable].origin if variable in given else "default"))
    return Rows(["variable", "value", "from"], found)
