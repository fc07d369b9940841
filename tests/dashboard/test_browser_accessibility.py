"""axe-core finds nothing serious on any page, in light and dark."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from pages import switch_pause
from playwright.sync_api import expect
from running import PATIENCE_MS

from contract.domains import DOMAINS

PAGES = ("Overview", *(domain.title for domain in DOMAINS), "Health")
# What was pale while it was drawn again takes a moment to get its color back.
DRAWN = "() => !document.querySelector('[data-stale=true]') && !document.getAnimations().some(one => one instanceof CSSTransition)"
# Streamlit names its small charts as a whole, and not the groups of Vega's marks in them.
SKIPPED = {"exclude": [["[data-testid=stMetricChart] svg"], ["[data-testid=stMetric] svg"]]}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_is_found(page, camera_stats, states, scheme):
    camera_stats.count("94107", 12)
    states("nest-camera-stats", "running")
    page.emulate_media(color_scheme=scheme)
    found = {}
    for title in PAGES:
        page.get_by_role("link", name=title, exact=True).click(timeout=PATIENCE_MS)
        expect(page.get_by_role("heading", level=1, name=title)).to_be_visible(timeout=PATIENCE_MS)
        if title in {"Overview", "Nest cameras", "Health"}:
            expect(page.get_by_test_id("stMetric").last).to_be_visible(timeout=PATIENCE_MS)
        if page.get_by_text("Pause").count():
            switch_pause(page, on=True)  # Streamlit pales what it draws again; what stands still has its own colours
        page.wait_for_function(DRAWN, timeout=PATIENCE_MS)
        violations = Axe().run(page, context=SKIPPED).response["violations"]
        found[title] = [(one["id"], one["nodes"][0]["html"][:200]) for one in violations if one["impact"] in {"serious", "critical"}]
    assert found == {title: [] for title in PAGES}
