"""Checks the schema registry."""

from http import HTTPStatus
from typing import Any

import requests

from contract.registry.http import registry_session
from contract.settings import Settings
from streamgauge.operations.doctor.findings import Finding
from streamgauge.platform.registry import EmbeddedRegistry

ANSWER_SECONDS = 2.0


def registry(settings: Settings) -> list[Finding]:
    """Checks that a Confluent-compatible registry answers. Reports its program, its subjects and its compatibility rule."""
    url = settings.registry_url
    with registry_session(settings.registry) as session:
        try:
            answer = session.get(f"{url}/subjects", timeout=ANSWER_SECONDS)
        except requests.RequestException as error:
            return [_no_answer(settings, error)]
        if answer.status_code != HTTPStatus.OK or not isinstance(subjects := _json(answer), list):
            message = f"what answers at {url} lists no subjects (HTTP {answer.status_code})"
            return [Finding("schema registry", "problem", message, f"a Confluent-compatible API is expected there; {_correct(settings)}")]
        rule = _get(session, f"{url}/config").get("compatibilityLevel", "unknown")
        shown = f"{_program(session, url)} answers at {url}: {len(subjects)} subjects, compatibility {rule}"
    if rule == "NONE":
        return [
            Finding("schema registry", "warning", shown, "choose BACKWARD, or a new schema may be one that old records cannot be read by")
        ]
    return [Finding("schema registry", "ok", shown)]


def _program(session: requests.Session, url: str) -> str:
    """The registry's name and version, as far as it reports them."""
    base, found, _ = url.partition("/apis/")
    if found and "name" in (told := _get(session, f"{base}/apis/registry/v3/system/info")):
        return f"{str(told['name']).partition(' (')[0]} {told.get('version', '')}".strip()
    told = _get(session, f"{url}/v1/metadata/version")
    return f"Confluent Schema Registry {told['version']}" if "version" in told else "a registry that does not tell its name"


def _get(session: requests.Session, url: str) -> dict[str, Any]:
    """The JSON object in the response. Empty if there is none."""
    try:
        found = _json(session.get(url, timeout=ANSWER_SECONDS))
    except requests.RequestException:
        return {}
    return found if isinstance(found, dict) else {}


def _json(answer: requests.Response) -> object:
    try:
        return answer.json()
    except ValueError:
        return None


def _no_answer(settings: Settings, error: requests.RequestException) -> Finding:
    url, reason = settings.registry_url, _reason(error)
    if settings.schema_registry_url:
        return Finding(
            "schema registry", "problem", f"none answers at SCHEMA_REGISTRY_URL={url} ({reason})", f"start it, or {_correct(settings)}"
        )
    own = EmbeddedRegistry(settings)
    if own.process is not None:
        message = f"the embedded registry runs (pid {own.process.pid}) and does not answer at {url} ({reason})"
        return Finding("schema registry", "problem", message, f"wait a moment if it has just been started; else see {own.log}")
    return Finding(
        "schema registry", "note", f"the embedded registry does not run ({url})", "`streamgauge up` or `streamgauge demo` starts it"
    )


def _reason(error: requests.RequestException) -> str:
    if isinstance(error, requests.Timeout):
        return f"no answer in {ANSWER_SECONDS:g} s"
    return "no connection" if isinstance(error, requests.ConnectionError) else str(error)


def _correct(settings: Settings) -> str:
    return "correct SCHEMA_REGISTRY_URL" if settings.schema_registry_url else EmbeddedRegistry(settings).port_advice
