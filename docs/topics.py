"""Writes the tables of docs/topics.md, the JSON Schemas of data/schemas and the data contracts of data/contracts: `python docs/topics.py`.

All are made from the declarations of the topics.
"""

import ast
import inspect
import json
import re
import tomllib
from collections.abc import Iterator
from datetime import timedelta
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml
from pydantic.json_schema import GenerateJsonSchema

from contract.domains import DOMAINS, NAMES, TOPICS
from contract.topics import BatchEvent, Topic
from infrastructure.rows import Fields
from infrastructure.settings import Settings

PAGE = Path(__file__).with_suffix(".md")
ROOT = PAGE.parents[1]
SCHEMAS = ROOT / "data" / "schemas"
CONTRACTS = ROOT / "data" / "contracts"
MODULES = ("contract.topics", *(f"contract.domains.{name}" for name in NAMES))
_MADE = re.compile(r"(<!-- (\w+), by docs/topics.py -->\n).*?(<!-- end -->\n)", re.DOTALL)
_KEY_AND_VALUE = re.compile(r"Key: (?:canonical JSON )?(.*?)(?:, UTC)?\.\s+Value: (.*)\.\s*", re.DOTALL)
_VERBATIM = re.compile(r'\{"[^ ]*\}|"<[^"]*"')


def page() -> str:
    """The page, with its tables made anew."""
    made = {"topics": table, "fields": fields}
    return _MADE.sub(lambda found: f"{found[1]}\n{''.join(made[found[2]]())}\n{found[3]}", PAGE.read_text())


def table() -> Iterator[str]:
    """A line for each topic."""
    texts = dict(texts_below())
    yield "| topic | partitions | policy | key | value |\n|---|---|---|---|---|\n"
    for topic in TOPICS:
        cells = [_VERBATIM.sub(r"`\g<0>`", " ".join(text.split())).replace("|", "\\|") for text in texts[topic.plain_name]]
        yield f"| `{topic.plain_name}` | {topic.partitions} | {_policy(topic)} | {' | '.join(cells)} |\n"


def texts_below() -> Iterator[tuple[str, tuple[str, str]]]:
    """What the text below the definition of each topic says of its keys and its values."""
    for module in map(import_module, MODULES):
        for statement, text in pairwise(ast.parse(inspect.getsource(module)).body):
            match statement, text:
                case ast.Assign(targets=[ast.Name(id=name)]), ast.Expr(value=ast.Constant(value=str(below))):
                    topic, found = getattr(module, name), _KEY_AND_VALUE.fullmatch(below)
                    if isinstance(topic, Topic) and found is not None:
                        yield topic.plain_name, (found[1], found[2])


def _policy(topic: Topic) -> str:
    kept_ms = topic.config.get("retention.ms")
    days = f", {str(timedelta(milliseconds=int(kept_ms))).partition(',')[0]}" if kept_ms else ""
    return topic.config["cleanup.policy"].replace(",", " and ") + days


def fields() -> Iterator[str]:
    """The fields of each kind of row, and of what its fields consist of."""
    declared: dict[str, Any] = {}
    for row in (*(topic.row for topic in TOPICS if topic.row.names()), BatchEvent):
        _collect(schema_of(row), declared)
    for name, schema in declared.items():
        width, required = max(map(len, schema["properties"])), schema.get("required", ())
        lines = [f"{field:{width}}  {_type(of)}{'' if field in required else ', optional'}" for field, of in schema["properties"].items()]
        yield f"**{name}**: {schema['description']}\n\n```text\n" + "\n".join(lines) + "\n```\n\n"


def _collect(schema: Any, declared: dict[str, Any]) -> None:  # noqa: ANN401 - any part of a JSON Schema
    if isinstance(schema, dict) and "properties" in schema:
        declared[schema["title"]] = schema
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        _collect(part, declared)


def _type(schema: dict[str, Any]) -> str:
    match schema:
        case {"anyOf": [of, _]}:
            return f"{_type(of)} or null"
        case {"enum": values}:
            return " or ".join(map(json.dumps, values))
        case {"title": name} | {"format": name}:
            return str(name)
        case {"items": of}:
            return f"list of {_type(of)}"
        case {"additionalProperties": of}:
            return f"object of {_type(of)}"
    return str(schema["type"])


def schemas() -> dict[Path, str]:
    """The JSON Schema of each topic whose values are JSON, by file."""
    of_json = [topic for topic in TOPICS if topic.row.names() and not topic.is_avro]
    head = {"$schema": GenerateJsonSchema.schema_dialect}
    return {SCHEMAS / f"{topic.plain_name}-value.json": json.dumps(head | schema_of(topic.row), indent=2) + "\n" for topic in of_json}


def schema_of(row: type[Fields]) -> dict[str, Any]:
    """A kind of row as JSON Schema, which cannot say that a window ends after its start."""
    return _Schema().generate(row.core_schema())


def contracts() -> dict[Path, str]:
    """The data contract of each topic of rows, by file, in the Open Data Contract Standard (ODCS)."""
    texts, version = dict(texts_below()), tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    domains = {topic.plain_name: domain.name for domain in DOMAINS for topic in domain.topics}
    return {
        CONTRACTS / f"{topic.plain_name}.odcs.yaml": yaml.safe_dump(
            {
                "apiVersion": "v3.2.0",
                "kind": "DataContract",
                "id": f"streamgauge:{topic.plain_name}",
                "version": version,
                "status": "active",
                "domain": domains.get(topic.plain_name, "streamgauge"),
                "servers": [_server(topic)],
                "schema": [_table(topic, texts[topic.plain_name][0])],
            },
            sort_keys=False,
            width=140,
        )
        for topic in TOPICS
        if topic.row.names()
    }


def _server(topic: Topic) -> dict[str, str]:
    return {"server": "kafka", "type": "kafka", "host": Settings().bootstrap_servers, "format": "avro" if topic.is_avro else "json"}


def _table(topic: Topic, key: str) -> dict[str, Any]:
    """A topic as ODCS has a table. It has no `primaryKey`, which would forbid that a topic also has older rows of a key."""
    row = schema_of(topic.row)
    of_a_table = "The newest record of a key is its row. One without a value deletes the row."
    return {
        "name": topic.plain_name,
        "physicalType": "topic",
        "description": row["description"],
        "customProperties": [{"property": "key", "value": " ".join(key.split())}],
        **({"quality": [{"type": "text", "description": of_a_table}]} if topic.is_compacted else {}),
        "properties": _properties(row),
    }


def _properties(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"name": name, "required": name in schema.get("required", ()) and "anyOf" not in of} | _property(of)
        for name, of in schema["properties"].items()
    ]


def _property(schema: dict[str, Any]) -> dict[str, Any]:  # noqa: PLR0911 - a line for each kind
    """A JSON Schema as ODCS has a type. The physical type is for tools that would read an integer as one of 32 bits, and a number as a decimal."""
    bounds = {"logicalTypeOptions": found} if (found := {name: schema[name] for name in ("minimum", "maximum") if name in schema}) else {}
    match schema:
        case {"anyOf": [of, _]}:
            return _property(of)
        case {"enum": values}:
            return {"logicalType": "string", "enum": [{"value": value} for value in values]}
        case {"properties": _}:
            return {"logicalType": "object", "description": schema["description"], "properties": _properties(schema)}
        case {"items": of}:
            return {"logicalType": "array", "items": _property(of)}
        case {"additionalProperties": of}:
            # Without bounds, because datacontract-cli warns that it cannot check those of a map's values.
            value = {"logicalType": _property(of)["logicalType"], "physicalType": _property(of)["physicalType"]}
            return {"logicalType": "map", "map": {"key": {"logicalType": "string"}, "value": value}}
        case {"format": "date-time"}:
            return {"logicalType": "timestamp"}
        case {"type": "integer"}:
            return {"logicalType": "integer", "physicalType": "bigint"} | bounds
        case {"type": "number"}:
            return {"logicalType": "number", "physicalType": "double"} | bounds
    return {"logicalType": schema["type"]}


class _Schema(GenerateJsonSchema):
    def field_title_should_be_set(self, _schema: object) -> bool:
        return False


if __name__ == "__main__":
    PAGE.write_text(page())
    for file, text in (schemas() | contracts()).items():
        file.write_text(text)
