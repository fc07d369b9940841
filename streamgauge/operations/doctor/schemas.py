"""Checks the schema registry."""

from contract.registry.client import RegistryAway, SchemaRegistry
from contract.settings import Settings
from streamgauge.operations.doctor.findings import Finding
from streamgauge.platform.registry import EmbeddedRegistry


def registry(settings: Settings) -> list[Finding]:
    """Checks that a Confluent-compatible registry answers. Reports its subjects and its compatibility rule.

    Raises StreamgaugeError when a registry of the user's own does not answer, and when what answers is none.
    """
    asked = SchemaRegistry(settings.registry)
    try:
        subjects, rule = asked.subjects(), asked.compatibility
    except RegistryAway:
        if settings.schema_registry_url:
            raise
        return [_no_answer(settings)]
    shown = f"answers at {asked.url}: {len(subjects)} subjects, compatibility {rule or 'unknown'}"
    if rule == "NONE":
        return [
            Finding("schema registry", "warning", shown, "choose BACKWARD, or a new schema may be one that old records cannot be read by")
        ]
    return [Finding("schema registry", "ok", shown)]


def _no_answer(settings: Settings) -> Finding:
    own, url = EmbeddedRegistry(settings), settings.registry_url
    if own.process is not None:
        message = f"the embedded registry runs (pid {own.process.pid}) and does not answer at {url}"
        return Finding("schema registry", "problem", message, f"wait a moment if it has just been started; else see {own.log}")
    return Finding(
        "schema registry", "note", f"the embedded registry does not run ({url})", "`streamgauge up` or `streamgauge demo` starts it"
    )
