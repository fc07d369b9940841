"""The Health page as a person sees it: colours that cannot be missed, and strangers' bytes that stay bytes."""

import io

from PIL import Image
from playwright.sync_api import expect
from running import PATIENCE_MS

HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
RED = (220, 38, 38)


def share_of(shown, colour):
    """How many of a thousand pixels of the page as it is drawn now have about this colour."""
    picture = Image.open(io.BytesIO(shown.screenshot())).convert("RGB")
    pixels = picture.get_flattened_data() if hasattr(picture, "get_flattened_data") else picture.getdata()
    near = sum(all(abs(part - wanted) < 12 for part, wanted in zip(pixel, colour, strict=True)) for pixel in pixels)
    return 1000 * near / (picture.width * picture.height)


def test_a_failure_turns_the_page_red_and_a_new_start_turns_it_back(page, states, until):
    states("counts", "running")
    page.get_by_role("link", name="Health").click()
    expect(page.get_by_text("1 of 1"), "the query was told to run").to_be_visible(timeout=PATIENCE_MS)
    assert share_of(page, RED) < 0.05

    states("counts", "failed", error=f"boom {HOSTILE}", error_detail=f"boom {HOSTILE}\nby a bomb")
    expect(page.get_by_text("1 query does not run.")).to_be_visible(timeout=PATIENCE_MS)
    expect(page.get_by_test_id("stCode").first, "the error is shown as it is").to_have_text(f"boom {HOSTILE}")
    until(lambda: share_of(page, RED), lambda share: share > 1, "the state of the query was to be drawn in red")

    states("counts", "running")
    expect(page.get_by_text("1 query does not run.")).to_be_hidden(timeout=PATIENCE_MS)
    until(lambda: share_of(page, RED), lambda share: share < 0.05, "the red was to go")


def test_a_dead_letter_is_shown_as_it_came_and_runs_nothing(page, states):
    states("counts", "running")
    states.letter(HOSTILE.encode(), HOSTILE.encode())
    page.get_by_role("link", name="Health").click()
    expect(page.get_by_test_id("stCode").get_by_text(HOSTILE, exact=True)).to_be_visible(timeout=PATIENCE_MS)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download its bytes").click()
    assert download.value.path().read_bytes() == HOSTILE.encode()
    assert "owned" not in page.title()
    assert page.locator("img[src=x]").count() == 0
