"""The site's links to what is outside docs/: docs/site_links.py."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINKS = runpy.run_path(str(ROOT / "docs" / "site_links.py"))


@pytest.mark.parametrize(
    ("page", "text", "on_the_site"),
    [
        ("docs/README.md", "[run](../README.md#start)", "[run](repository/README.md#start)"),
        ("docs/README.md", "[labs](../workshop/README.md)", "[labs](repository/workshop/README.md)"),
        ("docs/README.md", "[tutorial](tutorial.md)", "[tutorial](tutorial.md)"),
        ("docs/explained/state.md", "[nest](../../pipeline/domains/nest.py)", "[nest](../files/pipeline/domains/nest.py.txt)"),
        ("docs/README.md", "[`deploy`](../deploy)", "`deploy`"),
        ("docs/README.md", "[Kafka](https://kafka.apache.org/39/)", "[Kafka](https://kafka.apache.org/39/)"),
        ("README.md", "[verify](docs/verify.md)", "[verify](../verify.md)"),
        ("README.md", '<img src="docs/pictures/pages.png">', '<img src="../pictures/pages.png">'),
        ("workshop/04-late/README.md", "[lateness](../../docs/explained/lateness.md)", "[lateness](../../../explained/lateness.md)"),
        ("workshop/04-late/README.md", "[discussion](discussion.md)", "[discussion](discussion.md)"),
    ],
)
def test_a_link_leads_to_where_the_site_has_the_file(page, text, on_the_site):
    assert LINKS["translated"](text, page) == on_the_site


def test_the_workshop_is_in_the_navigation():
    assert "- repository/workshop/README.md\n" in (ROOT / "mkdocs.yml").read_text()
