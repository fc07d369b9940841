"""Writes llms.txt, the list of all pages for programs that read the documentation: `python docs/llms.py`. Its source is docs/README.md."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILE = ROOT / "llms.txt"
MAP = ROOT / "docs" / "README.md"
HEAD = """# Streamgauge

> {summary}

Paths are those of the repository. To run it, read README.md; to change it, read AGENTS.md.
"""
_LINK = re.compile(r"\[([^\]]+)\]\(([^)#]+)\)")


def text() -> str:
    """The file, as https://llmstxt.org describes it: a section for each one of the map, a line for each page that it links to."""
    summary = (ROOT / "README.md").read_text().split("**")[1]  # the first text in bold
    sections = re.split(r"^##? ", MAP.read_text(), flags=re.MULTILINE)[1:]
    return HEAD.format(summary=summary) + "".join(_section(*section.split("\n", 1)) for section in sections)


def _section(title: str, body: str) -> str:
    return f"\n## {title}\n\n" + "".join(f"- {line}\n" for line in _lines(body))


def _lines(body: str) -> Iterator[str]:
    """A line for each link. A page that is alone on its line has the description that follows it, any other its own title."""
    for line in body.splitlines():
        links = _LINK.findall(line)
        description = line.partition("): ")[2] if len(links) == 1 else ""
        for name, target in links:
            page = (MAP.parent / target).resolve()
            title = name if description else page.read_text().partition("\n")[0].removeprefix("# ")
            yield f"[{title[0].upper()}{title[1:]}]({page.relative_to(ROOT)})" + (f": {description}" if description else "")


if __name__ == "__main__":
    FILE.write_text(text())
