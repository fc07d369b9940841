"""Converts Wikimedia's events, with all their irregularities, to the fields of data/schemas/wikimedia-value.avsc."""

from typing import Annotated, Any

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from contract.json_text import YEAR_10000, time_of

CANARY = "canary"
"""The meta.domain of artificial events by which Wikimedia monitors its streams."""

Edit = dict[str, Any]


def _json(value: Any) -> str:  # noqa: ANN401 - any JSON value
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError as error:
        msg = "nested too deep"
        raise ValueError(msg) from error


Long = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Seconds = Annotated[int, Field(ge=0, lt=YEAR_10000)]
Digits = Annotated[str, BeforeValidator(lambda value: str(value) if type(value) is int else value)]
Json = Annotated[str, BeforeValidator(_json)]


class _Strict(BaseModel):
    """Takes no value of another type: 1 is not true, and "1" is not 1."""

    model_config = ConfigDict(strict=True)


class OldAndNew(_Strict):
    """A number before and after the change."""

    old: Long | None = None
    new: Long | None = None


class Meta(_Strict):
    """Where the event comes from."""

    id: str
    dt: str
    domain: str
    stream: str | None = None
    uri: str | None = None
    request_id: str | None = None
    topic: str | None = None
    partition: Long | None = None
    offset: Long | None = None


class Change(_Strict):
    """The fields of the schema. "$schema", which is not a valid Avro name, is called schema_uri. Unknown fields stay as they are."""

    model_config = ConfigDict(extra="allow", validate_assignment=True)

    meta: Meta
    id: Long | None = None
    type: Digits
    wiki: str
    namespace: Long
    title: str
    title_url: str | None = None
    user: str
    bot: bool
    minor: bool | None = None
    patrolled: bool | None = None
    timestamp: Seconds | None = None
    comment: str | None = None
    parsedcomment: str | None = None
    length: OldAndNew | None = None
    revision: OldAndNew | None = None
    log_id: Long | None = None
    log_type: str | None = None
    log_action: str | None = None
    log_action_comment: str | None = None
    log_params: Json | None = None
    server_name: str | None = None
    server_url: str | None = None
    server_script_path: str | None = None
    notify_url: str | None = None
    schema_uri: str | None = Field(None, alias="$schema")


def is_canary(event: Any) -> bool:  # noqa: ANN401 - any JSON value
    """Whether the event is an artificial one of Wikimedia's."""
    meta = event.get("meta") if isinstance(event, dict) else None
    return isinstance(meta, dict) and meta.get("domain") == CANARY


def edit_event(event: Any) -> Edit | str:  # noqa: ANN401 - any JSON value
    """The change in `event` (parsed JSON) with the schema's fields, or a short text with the reason why there is none.

    An absent field is null. A numeric `type` becomes its digits. `log_params`, an object, an array or a string, becomes JSON; numbers in it
    that are fragments keep their digits. Without `timestamp`, the time is meta.dt. Unknown fields are passed through: a schema that has them
    uses them, any other ignores them.
    """
    if not isinstance(event, dict):
        return "not a JSON object"
    try:
        change = Change.model_validate(event)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    if change.timestamp is None:
        moment = time_of(change.meta.dt)
        if moment is None:
            return f"no timestamp, and meta.dt is not a date and time of the years 1970 to 9999, such as 2026-01-31T10:00:00Z: {change.meta.dt[:40]!r}"
        change.timestamp = int(moment.timestamp())
    return change.model_dump()
