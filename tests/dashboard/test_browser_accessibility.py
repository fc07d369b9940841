"""axe-core finds nothing serious on any page, in light and dark."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from running import PATIENCE_MS

from contract.domains import DOMAINS

PAGES = ("Overview", *(domain.title for domain in DOMAINS), "Health")
# Streamlit makes pale what it is about to draw again: a state between two pictures, and not a color of the page.
IN_FULL_COLOR = "[data-testid=stElementContainer] { opacity: 1 !important } * { transition: none !important; animation: none !important }"
# Streamlit names its small charts as a whole, and not the groups of Vega's marks in them.
SKIPPED = {"exclude": [["[data-testid=stMetricChart] svg"], ["[data-testid=stMetric] svg"]]}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_is_found(page, camera_stats, states, scheme):
    camera_stats.count("94107", 12)
    states("nest-camera-stats", "running")
    page.emulate_media(color_scheme=scheme)
    page.add_style_tag(content=IN_FULL_COLOR)
    found = {}
    for title in PAGES:
        page.get_by_role("link", name=title, exact=True).click(timeout=PATIENCE_MS)
        expect(page.get_by_role("heading", level=1, name=title)).to_be_visible(timeout=PATIENCE_MS)
        if title in {"Overview", "Nest cameras", "Health"}:
            expect(page.get_by_test_id("stMetric").last).to_be_visible(timeout=PATIENCE_MS)
        violations = Axe().run(page, context=SKIPPED).response["violations"]
        found[title] = [(one["id"], one["nodes"][0]["html"][:200]) for one in violations if one["impact"] in {"serious", "critical"}]
    assert found == {title: [] for title in PAGES}
