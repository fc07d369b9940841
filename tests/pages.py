"""Pages drawn by Streamlit's AppTest, and open ones in a browser."""

from playwright.sync_api import Page
from running import PATIENCE_MS, eventually
from streamlit.testing.v1 import AppTest


def drawn(app: AppTest) -> AppTest:
    """The page, drawn once more. Fails when it fails, and when a text that it shows could be HTML: texts of topics are other people's."""
    app.run()
    assert not app.exception, f"the page failed: {[error.value for error in app.exception]}"
    assert not [element.value for element in (*app.markdown, *app.caption) if element.allow_html], "no text of a page may be HTML"
    return app


def switch_pause(page: Page, *, on: bool) -> None:
    """Pauses or resumes an open page. A click is repeated: one on a switch that Streamlit is about to draw anew gets lost."""
    switch, label = page.get_by_role("switch", name="Pause"), page.get_by_test_id("stCheckbox").filter(has_text="Pause").locator("label")

    def is_done() -> bool:
        if switch.is_checked(timeout=PATIENCE_MS) != on:
            label.click(timeout=PATIENCE_MS)
        return page.get_by_text("Paused at").is_visible() == on

    eventually(is_done, "the page to be paused" if on else "the page to go on")
