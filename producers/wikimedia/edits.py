"""Converts Wikimedia's events, with all their irregularities, to the fields of data/schemas/wikimedia-value.avsc."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NoReturn

import orjson

CANARY = "canary"
"""The meta.domain of artificial events by which Wikimedia monitors its streams."""

_YEAR_10000 = 253_402_300_800
_LONG = range(-(2**63), 2**63)

Edit = dict[str, Any]


class _UnfitError(ValueError):
    """The reason why an event does not fit the schema."""


def is_canary(event: Any) -> bool:  # noqa: ANN401 - any JSON value
    """Whether the event is an artificial one of Wikimedia's."""
    meta = event.get("meta") if isinstance(event, dict) else None
    return isinstance(meta, dict) and meta.get("domain") == CANARY


def edit_event(event: Any) -> Edit | str:  # noqa: ANN401 - any JSON value
    """The change in `event` (parsed JSON) with the schema's fields, or a short text with the reason why there is none.

    An absent field is null. A numeric `type` becomes its digits. `log_params`, an object, an array or a string, becomes JSON. Without
    `timestamp`, the time is meta.dt. "$schema", which is not a valid Avro name, is called schema_uri. Unknown scalar fields are passed
    through: a schema that has them uses them, any other ignores them.
    """
    if not isinstance(event, dict):
        return f"a JSON object is expected, not {_json_type(event)}"
    try:
        meta = _meta(event)
        known = {name: read(event, name) for name, read in _FIELDS.items()}
        timestamp = _timestamp(event, meta["dt"])
    except _UnfitError as reason:
        return str(reason)
    passed_on = {name: value for name, value in event.items() if name not in _TAKEN and isinstance(value, str | int | float)}
    return {**passed_on, **known, "timestamp": timestamp, "schema_uri": _text(event, "$schema"), "meta": meta}


def _text(part: Mapping[str, Any], name: str) -> str | None:
    value = part.get(name)
    if value is not None and not isinstance(value, str):
        _refuse(name, "a string", value)
    return value


def _whole(part: Mapping[str, Any], name: str) -> int | None:
    value = part.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value not in _LONG):
        _refuse(name, "a whole number of 64 bits", value)
    return value


def _truth(part: Mapping[str, Any], name: str) -> bool | None:
    value = part.get(name)
    if value is not None and not isinstance(value, bool):
        _refuse(name, "true or false", value)
    return value


def _type(part: Mapping[str, Any], name: str) -> str:
    value = part.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return str(_required(_text)(part, name))


def _old_and_new(part: Mapping[str, Any], name: str) -> dict[str, int | None] | None:
    value = part.get(name)
    if value is None:
        return None
    if not isinstance(value, dict):
        _refuse(name, "an object", value)
    return {"old": _whole(value, "old"), "new": _whole(value, "new")}


def _as_json(part: Mapping[str, Any], name: str) -> str | None:
    value = part.get(name)
    return None if value is None else orjson.dumps(value).decode()


def _required(read: Callable[[Mapping[str, Any], str], Any]) -> Callable[[Mapping[str, Any], str], Any]:
    def read_what_must_be_there(part: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401 - as `read`
        value = read(part, name)
        if value is None:
            msg = f"no {name}"
            raise _UnfitError(msg)
        return value

    return read_what_must_be_there


def _meta(event: Mapping[str, Any]) -> dict[str, Any]:
    meta = event.get("meta")
    if not isinstance(meta, dict):
        _refuse("meta", "an object", meta)
    try:
        return {name: read(meta, name) for name, read in _META_FIELDS.items()}
    except _UnfitError as reason:
        msg = f"meta: {reason}"
        raise _UnfitError(msg) from reason


def _timestamp(event: Mapping[str, Any], dt: str) -> int:
    seconds = _whole(event, "timestamp")
    if seconds is None:
        try:
            moment = datetime.fromisoformat(dt)
        except ValueError as error:
            msg = f"no timestamp, and meta.dt is no time: {dt[:40]!r}"
            raise _UnfitError(msg) from error
        seconds = int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    if not 0 <= seconds < _YEAR_10000:
        msg = f"timestamp: seconds since 1970 are expected, not {seconds}"
        raise _UnfitError(msg)
    return seconds


def _refuse(name: str, expected: str, value: Any) -> NoReturn:  # noqa: ANN401 - any JSON value
    msg = f"{name}: {expected} is expected, not {_json_type(value)}"
    raise _UnfitError(msg)


def _json_type(value: Any) -> str:  # noqa: ANN401 - any JSON value
    names = {bool: "a truth value", int: "a number", float: "a number", str: "a string", list: "an array", dict: "an object"}
    return "null" if value is None else names[type(value)]


_FIELDS: dict[str, Callable[[Mapping[str, Any], str], Any]] = {
    "id": _whole,
    "type": _type,
    "wiki": _required(_text),
    "namespace": _required(_whole),
    "title": _required(_text),
    "title_url": _text,
    "user": _required(_text),
    "bot": _required(_truth),
    "minor": _truth,
    "patrolled": _truth,
    "comment": _text,
    "parsedcomment": _text,
    "length": _old_and_new,
    "revision": _old_and_new,
    "log_id": _whole,
    "log_type": _text,
    "log_action": _text,
    "log_action_comment": _text,
    "log_params": _as_json,
    "server_name": _text,
    "server_url": _text,
    "server_script_path": _text,
    "notify_url": _text,
}
_TAKEN = {*_FIELDS, "$schema", "meta", "timestamp"}
_META_FIELDS: dict[str, Callable[[Mapping[str, Any], str], Any]] = {
    "id": _required(_text),
    "dt": _required(_text),
    "domain": _required(_text),
    "stream": _text,
    "uri": _text,
    "request_id": _text,
    "topic": _text,
    "partition": _whole,
    "offset": _whole,
}
