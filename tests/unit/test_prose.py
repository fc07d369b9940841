"""How the documents are written: whole sentences of moderate length, standard words, American spelling, tables only for what is tabular."""

import re

import pytest
from documents import DOCUMENTS, NOTES, ROOT, named

FROM_THE_CODE = ROOT / "docs" / "commands.md"
MOST_WORDS_A_SENTENCE, MOST_WORDS_A_CELL = 40, 45
FOREIGN = re.compile(
    r"\b(all in all|also those|but for|by itself|by themselves|for good|in turn|(?:is|was) away"
    r"|behaviours?|catalogues?|centres?|colours?|favourites?|favours?|neighbours?|analys(?:ed?|ing)|brings? along"
    r"|(?:initial|normal|optim|organ|recogn|serial|summar)is(?:e[ds]?|ing|ations?))\b|\d%",
    re.IGNORECASE,
)
"""Words that an American reader stumbles over, and 2% for 2 %."""
UNIT = re.compile(r"\bCPU units?\b|\bunits? (0\.|of the machine)")
"""The machine's unit of CPU time, which only the notes on the benchmarks explain."""
DROPPED_LATE = re.compile(
    r"(?<!too )\blate (?:rows?|records?|events?|sightings?|trips?|edits?) (?:is|are|was|were) (?:dropped|lost)", re.IGNORECASE
)
"""A late event counts; one that is too late is dropped (docs/explained/lateness.md)."""


def lines_of(text):
    """The lines of prose and tables, without code and without what links lead to."""
    without_blocks = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`\n]+`", "`code`", without_blocks)).splitlines()


def flaws(text, *, may_have_units=False):
    """What is wrong with a text, each with its beginning."""
    lines = lines_of(text)
    for before, line in zip(["", *lines], lines, strict=False):
        if re.fullmatch(r"\|[-:| ]+\|", line) and not all(cells(before)):
            yield f"a column without a header: {before}"
        for part, most in [(cell, MOST_WORDS_A_CELL) for cell in cells(line)] or [(one, MOST_WORDS_A_SENTENCE) for one in sentences(line)]:
            if len(part.split()) > most:
                yield f"more than {most} words: {part[:60]}"
        if found := FOREIGN.search(line):
            yield f"{found[0]}: {line[max(0, found.start() - 30) : found.end() + 30]}"
        if found := DROPPED_LATE.search(line):
            yield f"what is dropped came too late: {found[0]}"
        if not may_have_units and UNIT.search(line):
            yield f"units of CPU time belong into benchmarks/NOTES.md: {line[:60]}"


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []


def sentences(line):
    return re.split(r"(?<=[.:;?!])\s", line)


@pytest.mark.parametrize("document", [one for one in DOCUMENTS if one != FROM_THE_CODE], ids=named)
def test_a_document_reads_well(document):
    assert list(flaws(document.read_text(), may_have_units=document == NOTES)) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("| | what |\n|---|---|\n| a | b |\n", "a column without a header"),
        (f"| what |\n|---|\n| {'word ' * 46}|\n", "more than 45 words"),
        ("word " * 41, "more than 40 words"),
        ("It restarts by itself.", "by itself"),
        ("2% are late.", "2%"),
        ("Two late events are dropped.", "what is dropped came too late"),
        ("It takes 80 CPU units.", "units of CPU time"),
    ],
)
def test_a_flaw_is_found(text, said):
    (flaw,) = flaws(text)
    assert flaw.startswith(said)


@pytest.mark.parametrize(
    "text",
    [
        "`by itself` and\n```\n2% by itself\n```\n",
        "[so](in-turn-2%25.md)",
        "a sentence; another: " + "word " * 39,
        "Two too late events are dropped.",
    ],
)
def test_code_links_and_parts_of_a_sentence_are_no_flaws(text):
    assert list(flaws(text)) == []
