"""The settings as they are in effect, each with where it comes from; and variables that look like settings and are none."""

from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches

from contract.row_formats import Rows
from contract.settings import Settings
from contract.text import without_credentials

PREFIX = "STREAMGAUGE_"


def rows(settings: Settings, environment: Mapping[str, str]) -> Rows:
    """The value of each setting, and "environment" or "default". Secrets are masked. environment: what `settings` were read from."""
    found = []
    for setting in fields(settings):
        variable, value = setting.metadata["variable"], getattr(settings, setting.name)
        text = "" if value is None else without_credentials(str(value)) if setting.repr or not value else "***"
        found.append((variable, text, "environment" if environment.get(variable) else "default"))
    return Rows(["variable", "value", "from"], found)


def unknown(environment: Mapping[str, str]) -> list[str]:
    """A line for each variable with the prefix of settings that is none, with the setting that may be meant."""
    known = Settings().environment()
    lines = []
    for variable in sorted(environment):
        if variable.startswith(PREFIX) and variable not in known:
            similar = get_close_matches(variable, known, n=1)
            lines.append(f"{variable} is no setting{f'; {similar[0]} may be meant' if similar else ''}")
    return lines
