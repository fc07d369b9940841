"""Takes the pictures of docs/pictures in Chromium, light and dark: `make screenshots`, while the dashboard runs.

The Overview page, the others side by side, and two pages on a phone.

`make demo` for ten minutes in an empty STREAMGAUGE_HOME gives the same simulated events each time; `streamgauge verify` the badges of the
Overview page.

A test fails when the code of a page is newer than its picture. If the page looks as before, `python docs/screenshots.py --unchanged` says so.
"""

import argparse
import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from PIL import Image
from playwright.sync_api import Browser, Playwright, sync_playwright

from contract.domains import DOMAINS
from dashboard.server import dashboard_url
from infrastructure.settings import Settings

PICTURES = Path(__file__).with_name("pictures")
TAKEN_OF = PICTURES / "taken-of.json"
"""The `code_of` the pages when the pictures were taken."""
PAGES = {"overview": "Overview", **{domain.name: domain.title for domain in DOMAINS}, "health": "Health"}
Size = tuple[int, int]
DESK, PHONE, OVERVIEW_HEIGHT = (1280, 860), (390, 844), 1020
"""Width and height of a page, in pixels. The Overview page is as high as what it shows."""
GAP, GREY = 12, (128, 128, 128)
TOGETHER = [domain.name for domain in DOMAINS] + ["health"]
ON_PHONE = TOGETHER[:2]
SCHEMES: dict[Literal["light", "dark"], str] = {"light": "", "dark": "-dark"}
"""By colour scheme, how the names of its pictures end."""
DRAWN_MS = 300_000


def code_of() -> dict[str, str]:
    """For each page, by name, a digest of its files and of those that the pages share."""
    dashboard = Path(__file__).parents[1] / "dashboard"
    shared = [*dashboard.glob("*.py"), dashboard / "theme.toml"]
    files = {name: [*dashboard.glob(f"domains/{name}*.py"), *dashboard.glob(f"{name}/*.py")] for name in PAGES}
    return {
        name: hashlib.sha256(b"".join(path.read_bytes() for path in sorted([*own, *shared]))).hexdigest()[:16]
        for name, own in files.items()
    }


def chromium(playwright: Playwright) -> Browser:
    """The browser of this machine; without one, Playwright's own."""
    installed = shutil.which("chromium") or shutil.which("google-chrome")
    return playwright.chromium.launch(executable_path=installed, args=["--no-sandbox", "--disable-gpu"])


def photograph(browser: Browser, url: str, scheme: Literal["light", "dark"], names: Iterable[str], size: Size, folder: Path) -> None:
    """Writes a picture of each of these pages into `folder`."""
    page = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
    page.set_default_timeout(DRAWN_MS)
    for name in names:
        title = PAGES[name]
        page.set_viewport_size({"width": size[0], "height": OVERVIEW_HEIGHT if name == "overview" else size[1]})
        page.goto(f"{url}/{name}" if name != "overview" else url)
        page.get_by_role("heading", level=1, name=title).wait_for()
        page.get_by_test_id("stMetric").last.wait_for()
        page.locator("[data-testid=stSkeleton]").first.wait_for(state="detached")
        page.wait_for_function("() => !document.querySelector('[data-stale=true]')")
        if name == "overview":
            for part in ("stMetricChart] svg", "stVegaLiteChart] svg", "stGraphVizChart] svg"):
                page.wait_for_function(f"() => document.querySelectorAll('[data-testid={part}').length >= {len(DOMAINS)}")
        page.screenshot(path=folder / f"{name}.png")
    page.close()


def side_by_side(paths: Iterable[Path], width: int, height: int) -> Image.Image:
    """One picture of several: two in each row, each of this width and height, with a gap between them."""
    pictures = [Image.open(path).convert("RGB").resize((width, height)) for path in paths]
    rows = -(-len(pictures) // 2)
    whole = Image.new("RGB", (2 * width + GAP, rows * (height + GAP) - GAP), GREY)
    for number, picture in enumerate(pictures):
        row, column = divmod(number, 2)
        whole.paste(picture, (column * (width + GAP), row * (height + GAP)))
    return whole


def main() -> None:
    """Takes the pictures, and writes down of which code."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--url", default=dashboard_url(Settings.from_environment()), help="of the dashboard; the one of this machine without"
    )
    options.add_argument("--unchanged", action="store_true", help="take no pictures: the pages look as on those that are there")
    chosen = options.parse_args()
    if not chosen.unchanged:
        take(chosen.url)
    TAKEN_OF.write_text(json.dumps(code_of(), indent=2) + "\n")


def take(url: str) -> None:
    """Takes each page in both themes. url: of the dashboard."""
    with sync_playwright() as playwright:
        browser = chromium(playwright)
        for scheme, kind in SCHEMES.items():
            with tempfile.TemporaryDirectory() as made:
                folder = Path(made)
                photograph(browser, url, scheme, PAGES, DESK, folder)
                shutil.copy(folder / "overview.png", PICTURES / f"overview{kind}.png")
                together = side_by_side((folder / f"{name}.png" for name in TOGETHER), DESK[0] // 2, DESK[1] // 2)
                together.save(PICTURES / f"pages{kind}.png", optimize=True)
                photograph(browser, url, scheme, ON_PHONE, PHONE, folder)
                side_by_side((folder / f"{name}.png" for name in ON_PHONE), *PHONE).save(PICTURES / f"phone{kind}.png", optimize=True)
        browser.close()


if __name__ == "__main__":
    main()
