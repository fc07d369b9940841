"""The form of an alert, by a template of the user's."""

from collections.abc import Callable, Mapping
from pathlib import Path
from string import Template
from typing import Any

import orjson

from infrastructure.errors import StreamgaugeError
from infrastructure.web.webhook import Form

FIELDS = ("time", "level", "query", "what", "detail", "incident", "text", "action", "severity")


def form_of(file: Path) -> Form:
    """The form of alerts by the text of a file, in which $NAME stands for a field. In JSON, it stands in strings; other text is sent as plain text.

    Raises StreamgaugeError for a file that cannot be read, or names another field.
    """
    try:
        text = file.read_text("utf-8-sig")
    except (OSError, ValueError) as error:
        msg = f"{file} cannot be read: {error}; expected a text file, the template of an alert"
        raise StreamgaugeError(msg) from error
    content_type, template, encoded = _parsed(file, text)
    try:
        _filled(template, dict.fromkeys(FIELDS, ""))
    except (KeyError, ValueError) as error:
        names = ", ".join(f"${name}" for name in FIELDS)
        msg = f"{file} has a field that an alert lacks: {error}; expected {names}, and $$ for a dollar sign"
        raise StreamgaugeError(msg) from error

    def body(alert: Mapping[str, str]) -> bytes:
        is_over = alert["level"] == "resolved"
        more = {"action": "resolve" if is_over else "trigger", "severity": "info" if is_over else alert["level"]}
        return encoded(_filled(template, {**alert, **more}))

    return Form(content_type, body)


def _parsed(file: Path, text: str) -> tuple[str, Any, Callable[[Any], bytes]]:
    """The content type, the template, and how it is encoded when it is filled."""
    try:
        return "application/json", orjson.loads(text), orjson.dumps
    except ValueError as error:
        if text.lstrip().startswith(("{", "[")):
            msg = f"{file} begins like JSON and is not JSON: {error}; correct it, or begin plain text with another character"
            raise StreamgaugeError(msg) from error
        return "text/plain; charset=utf-8", text, str.encode


def _filled(value: Any, fields: Mapping[str, str]) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        return Template(value).substitute(fields)
    if isinstance(value, dict):
        return {name: _filled(item, fields) for name, item in value.items()}
    return [_filled(item, fields) for item in value] if isinstance(value, list) else value
