"""The documents of the project, for the tests that read them."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
NOTES = ROOT / "benchmarks" / "NOTES.md"
DOCUMENTS = [*sorted(ROOT.glob("*.md")), NOTES, *PAGES, *sorted((ROOT / "workshop").rglob("*.md"))]


def named(document: Path) -> str:
    """A document by its path in the repository."""
    return str(document.relative_to(ROOT))
