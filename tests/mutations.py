"""Values of source topics as no program should write them: whole ones with something changed at random, the same in each run.

`odd_values` makes values by their types; these start from records with all fields, and change what other programs get wrong.
"""

import copy
import json
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from avro import change, in_wire_format

NUMBERS = f"""
    1e400 -1e400 1e-400 1e999999999 5e-324 1e12 1e15 1e-5 -0 -0.0 0.0001 1.0 1.50 12345678.9 12.340000000000000001 1{"0" * 18}.0 -1 {"9" * 400}
    9223372036854775807 9223372036854775808 -9223372036854775809 12345678901234567890123456789 1767225600 1767225600000 253402300800 1767225600.5
""".split()
NO_NUMBERS = ["NaN", "Infinity", "-Infinity", "0x10", "1_000", "01", "1.", ".5", "+1", "TRUE", "nul", "'x'", "/**/1"]
TIMES = [
    "2026-13-01T00:00:00Z",
    "2026-02-30T00:00:00Z",
    "2026-01-01",
    "2026-01-01T00:00:00+14:00",
    "2026-01-01T24:00:00Z",
    "2026-01-01T23:59:60Z",
    "0000-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999999Z",
    "10000-01-01T00:00:00Z",
    "1582-10-10T00:00:00Z",
    "1900-01-01T00:00:00-04:56:02",
    "2026-01-01T00:00:00.123456789Z",
    "2026-1-1T0:0:0Z",
    "now",
    "-2026-01-01T00:00:00Z",
    "+2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00",
    "2026-01-01T00:00:00+01:00",
]
TEXTS = [
    *('""', '" "', r'"\u0000"', r'"\ud800"', r'"\udc00\ud800"', r'"\ud83d\ude00"', '"é"', '"\u2028"', r'"a\nb"', r'"a\/b"', r'"\x41"', '"\x01"'),
    *(r'"\\u001f"', r'"\u001f\u007f"', '"\ufeff"', '"1"', '"1.0"', '"NaN"', '"true"', f'"{"x" * 256}"', r'"{\"device_id\":\"x\"}"'),
    *(f'"{time}"' for time in TIMES),
]  # fmt: skip
OTHERS = ["true", "false", "null", "[]", "{}", "[[]]", "[null]", '{"b":1.50,"a":[1e12,"é😀\\u001f",null]}', "[" * 90 + "]" * 90]
ODD = [*NUMBERS, *NO_NUMBERS, *TEXTS, *OTHERS]
"""What may stand for a value in JSON, not all of it JSON."""
BEFORE = ["\ufeff", " ", "\n\n", "[", " \t", "//x\n", "\0"]
AFTER = [" ", "\n", "{}", " x", ",", "\0", "}", "]", "//c", "\ufeff", " null"]
ENCODINGS = ["utf-16", "utf-16-le", "utf-32", "latin-1"]

CAMERA = {
    "device_id": "c1",
    "structure_id": "s1",
    "where_name": "Hall",
    "is_online": True,
    "last_is_online_change": "2026-01-01T09:00:00.000Z",
    "is_audio_input_enabled": False,
    "activity_zones": [{"name": "Door", "id": 1}],
    "last_event": {
        "has_person": True,
        "start_time": "2026-01-01T10:00:00.000Z",
        "end_time": "2026-01-01T10:01:00.000Z",
        "web_url": "https://example.org",
        "activity_zone_ids": ["1"],
    },
}
CONNECTED = {"structure_id": "s1", "name_long": "Hall", "is_online": True, "last_connection": "2026-01-01T10:00:00.000Z"}
THERMOSTAT = {
    **CONNECTED,
    "device_id": "t1",
    "ambient_temperature_c": 21.5,
    "target_temperature_c": 20.0,
    "humidity": 40,
    "hvac_mode": "heat",
}
ALARM = {**CONNECTED, "device_id": "a1", "smoke_alarm_state": "ok", "co_alarm_state": "warning", "battery_health": "ok"}
DOCUMENTS = [
    {"devices": {"cameras": {"c1": CAMERA}}},
    {
        "devices": {
            "cameras": {"c1": CAMERA},
            "thermostats": {"t1": THERMOSTAT},
            "smoke_co_alarms": {"a1": ALARM},
            "locks": {"l1": {"bolt": 1.0}},
        }
    },
]
TRIP = {
    "VendorID": 2,
    "lpep_pickup_datetime": 1_767_225_600_000,
    "lpep_dropoff_datetime": 1_767_226_200_000,
    "store_and_fwd_flag": "N",
    "RatecodeID": 1.0,
    "PULocationID": 74,
    "DOLocationID": 75,
    "passenger_count": 1.0,
    "trip_distance": 1.52,
    "fare_amount": 10.1,
    "tip_amount": 0.0,
    "ehail_fee": None,
    "total_amount": 12.4,
}
CHANGES = [
    in_wire_format(change(1, at=1_767_225_600, bot=True, minor=False, log_params='{"a":1.0}'), schema_id=3),
    in_wire_format(change(2, at=1_767_225_600, kind="log", id=None, title="é😀"), schema_id=3),
]


def of_json(objects: Sequence[Any], count: int, seed: int) -> list[bytes]:
    """So many JSON values, each one of the objects with a few changes."""
    random = Random(seed)
    return [_json(random, copy.deepcopy(random.choice(objects))) for _ in range(count)]


def of_avro(values: Sequence[bytes], count: int, seed: int) -> list[bytes]:
    """So many values in the wire format, each one of those with a few changes behind its prefix."""
    random = Random(seed)
    return [value[:5] + changed_bytes(random, value[5:]) for value in (random.choice(values) for _ in range(count))]


def changed_bytes(random: Random, value: bytes) -> bytes:
    changed = bytearray(value)
    for _ in range(random.choice([1, 1, 2, 5])):
        at = random.randrange(len(changed) + 1)
        match random.choice(["set", "set", "flip", "cut", "insert"]):
            case "set":
                changed[at : at + 1] = random.choice([random.randbytes(1), *(bytes([one]) for one in (0, 1, 2, 3, 0x7F, 0x80, 0xFF))])
            case "flip" if at < len(changed):
                changed[at] ^= 1 << random.randrange(8)
            case "cut":
                del changed[at : at + random.choice([1, 2, 10, 1000])]
            case "insert":
                changed[at:at] = random.randbytes(random.choice([1, 2, 8]))
    return bytes(changed)


def retyped(random: Random, value: bytes) -> bytes:
    """The value with one of its characters typed otherwise, most often by one of its kind."""
    at = random.randrange(len(value))
    of_kind = next((kind for kind in ("0123456789", "abcdefghijklmnopqrstuvwxyz", '{}[]:,"') if chr(value[at]) in kind), "Az09")
    new = random.choice(random.choice([of_kind, of_kind, of_kind, " \\\"'-.eE\n\0\u00e9\u2028\x7f"]))
    return value[:at] + new.encode() + value[at + 1 :]


def _json(random: Random, value: Any) -> bytes:
    odd: dict[str, str] = {}
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        _change(random, value, odd)
    separators = random.choice([(",", ":"), (", ", ": ")])
    text = json.dumps(value, ensure_ascii=random.choice([True, False]), separators=separators)
    for mark, instead in odd.items():
        text = text.replace(f'"{mark}"', instead)
    text = _changed_text(random, text)
    encoding = random.choice(ENCODINGS) if random.random() < 0.05 else "utf-8"
    encoded = text.encode(encoding, "surrogatepass" if encoding == "utf-8" else "replace")
    return changed_bytes(random, encoded) if random.random() < 0.1 else encoded


def _change(random: Random, value: Any, odd: dict[str, str]) -> None:
    """Changes something in the value. odd: what must stand in its text for a string."""
    places = list(_places(value))
    if not places:
        return
    parent, name = random.choice(places)
    match random.choice(["odd"] * 5 + ["gone", "renamed", "twice", "moved", "wrapped"]):
        case "gone":
            del parent[name]
        case "renamed" if isinstance(parent, dict):
            parent[random.choice([name.upper(), f"{name} ", f"x{name}", name.title()])] = parent.pop(name)
        case "twice" if isinstance(parent, dict):
            parent[f"zz{random.randrange(9)}"] = copy.deepcopy(parent[name])
        case "moved":
            other, others = random.choice(places)
            parent[name] = copy.deepcopy(other[others])
        case "wrapped":
            parent[name] = random.choice([[parent[name]], {"v": parent[name]}])
        case _:
            mark = f"@@{len(odd)}@@"
            odd[mark] = random.choice(ODD)
            parent[name] = mark


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each thing in the value: what it is in, and its name or number there."""
    for name, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield value, name
        yield from _places(inner)


def _changed_text(random: Random, text: str) -> str:
    match random.choice(["before", "after", "name twice", "single quotes", "two commas", *["as it is"] * 30]):
        case "before":
            return random.choice(BEFORE) + text
        case "after":
            return text + random.choice([*AFTER, text])
        case "name twice":
            start, end = text.find("{") + 1, text.find(":")
            return f"{text[:start]}{text[start:end]}:{random.choice(ODD)},{text[start:]}"
        case "single quotes":
            return text.replace('"', "'", 2)
        case "two commas":
            return text.replace(",", ",,", 1)
    return text
