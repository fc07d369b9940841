"""The documents against the code."""

import re
from pathlib import Path

from contract.domains import TOPICS
from contract.settings import Settings

ROOT = Path(__file__).parents[2]


def rows(document, first_cell):
    lines = (ROOT / document).read_text().splitlines()
    cells = [[cell.strip().strip("`") for cell in line.strip("|").split(" | ")] for line in lines if re.match(first_cell, line)]
    return [tuple(row) for row in cells]


def test_the_table_of_settings_is_that_of_the_code():
    documented = [tuple(cell.strip("` ") for cell in row) for row in rows("docs/settings.md", r"\| `[A-Z_]+` \|")]
    assert documented == Settings.table()


def test_every_topic_is_documented_with_its_partitions():
    documented = {row[0].strip("` "): row[1] for row in rows("docs/topics.md", r"\| `[a-z.-]+` \|")}
    assert documented == {topic.name: str(topic.partitions) for topic in TOPICS}


def test_links_between_documents_lead_somewhere():
    for document in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
            if not target.startswith("http"):
                assert (document.parent / target).exists(), f"{document.name} links to {target}, which is not there"


def test_the_readme_stays_short():
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 100, "move what is reference to docs/"


def test_the_walk_to_a_new_domain_quotes_its_files():
    code = "\n".join(path.read_text() for path in (ROOT / "tests" / "weather").rglob("*.py"))
    for quoted in re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "add-a-domain.md").read_text(), re.DOTALL):
        assert quoted in code, f"no file in tests/weather has:\n{quoted}"
