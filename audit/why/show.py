"""Formats what is behind a row, for people and for programs."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

import orjson
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from audit.checks.dead_letters import record_named
from audit.verdicts.comparison import MOST_SHOWN
from audit.verdicts.show import json_of, row_text
from audit.why.explanation import Cause, Explanation, Letter, Sample
from infrastructure.text import duration, printable

_OPTIONS = orjson.OPT_NAIVE_UTC | orjson.OPT_UTC_Z


def as_json(explanation: Explanation) -> str:
    """A JSON object with the fields of Explanation."""
    return json_of(asdict(explanation), _OPTIONS)


def show(explanation: Explanation, console: Console) -> None:
    """Prints the row, then the records of each kind, then what they come to."""
    console.print(f"{explanation.topic} {explanation.key}", style="bold")
    console.print(f"  found     {row_text(explanation.found)}")
    console.print(f"  expected  {row_text(explanation.expected)}")
    _show_records("counted", explanation.counted, console)
    _show_records("repeated", explanation.repeated, console)
    _show_records("too late", explanation.late, console)
    _show_letters(explanation, console)
    for note in explanation.notes:
        console.print(f"  {note}")
    console.print(f"\n{_summary(explanation)}", style="bold red" if explanation.is_wrong else None)


def show_keys(keys: Sequence[bytes], console: Console) -> None:
    """Prints the first of several keys."""
    for key in keys[:MOST_SHOWN]:
        console.print(f"  {key.decode(errors='replace')}")
    if len(keys) > MOST_SHOWN:
        console.print(f"  ... and {len(keys) - MOST_SHOWN:,} more")


def _show_records(kind: str, sample: Sample, console: Console) -> None:
    console.print(f"\n{kind}: {_number(sample.count)}")
    if not sample.first:
        return
    causes = [cause for cause in sample.first if isinstance(cause, Cause)]
    names = ["record", "time", "event time", "batch", *([""] if any(map(_remark, causes)) else [])]
    table = Table(*(Column(name, overflow="fold") for name in names), box=None, pad_edge=False, header_style="bold")
    for cause in causes:
        record = record_named((cause.topic, cause.partition, cause.offset))
        cells = (record, _time(cause.time), _time(cause.event_time), f"{cause.batch}", _remark(cause))
        table.add_row(*(Text(printable(cell)) for cell in cells[: len(names)]))
    console.print(table)
    _show_rest(sample, console)


def _show_letters(explanation: Explanation, console: Console) -> None:
    console.print(
        f"\ndead letters of these records: {explanation.letters.count:,}; of other records that were read: {explanation.other_letters:,}"
    )
    for letter in explanation.letters.first:
        if isinstance(letter, Letter):
            console.print(f"  {record_named((letter.topic, letter.partition, letter.offset))}: {printable(letter.reason)}")
    _show_rest(explanation.letters, console)
    if explanation.other_letters:
        console.print("  which of the others were meant for this row cannot be told: `streamgauge dead-letters` lists them")


def _show_rest(sample: Sample, console: Console) -> None:
    if sample.count > len(sample.first):
        console.print(f"... and {sample.count - len(sample.first):,} more; --limit shows more")


def _remark(cause: Cause) -> str:
    if cause.counted is not None:
        return f"repeats {record_named(cause.counted)}"
    if cause.watermark is not None:
        by = duration(cause.watermark - cause.event_time)
        late = f"{by} behind the watermark {cause.watermark:%Y-%m-%dT%H:%M:%SZ}"
        return f"{late}; {cause.note}" if cause.note else late
    return cause.note


def _summary(explanation: Explanation) -> str:
    number = _number(explanation.counted.count)
    total = f"{number} counted, {_number(explanation.repeated.count)} repeated, {_number(explanation.late.count)} too late, of {explanation.records:,} records that were read"
    if explanation.expected is None:
        return f"No row should be there: {total}."
    is_sum = "these give" if explanation.is_sum else "these do not give"
    found = (
        "WRONG: the topic holds another row"
        if explanation.is_wrong
        else "and the topic holds it"
        if explanation.kind == "equal"
        else f"the row in the topic is {explanation.kind.replace('_', ' ')}"
    )
    return f"{total}: {is_sum} the expected row; {found}."


def _number(count: int) -> str:
    return f"{count:,}"


def _time(time: datetime | None) -> str:
    return "" if time is None else f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03}Z"
