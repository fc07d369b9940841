"""Records docs/pictures/verified.webp, light and dark, in Chromium: `make animation`, while `make demo` runs for some minutes.

A real run of the commands of section "Kill it, verify it" of the README: they kill the pipeline, and the demo restarts it. Between them, the
Overview page. Waiting is left out, so the animation is shorter than what it shows.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Literal

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from dashboard.server import dashboard_url
from docs.screenshots import PICTURES, SCHEMES, chromium
from infrastructure.settings import Settings

ROOT = Path(__file__).parents[1]
SECTION = "## Kill it, verify it"
SIZE, SHOWN = (1280, 1020), (960, 765)
"""Width and height of a page, and of it in the animation, in pixels."""
COLUMNS = 104
POLL_SECONDS = 3
"""Between two questions for the status, each of which takes seconds of a core."""
THEMES = {"light": ("#ffffff", "#1c1f24", "#0f766e"), "dark": ("#0e1117", "#e6e6e6", "#5eead4")}
"""Of the terminal, by colour scheme: background, text, prompt."""


def commands() -> list[str]:
    """Those of the README, each with its comment."""
    section = (ROOT / "README.md").read_text().partition(SECTION)[2]
    block = re.search(r"```\n(.*?)```", section, re.DOTALL)
    return block[1].splitlines() if block else []


class Recording:
    """The frames of one colour scheme: pictures of the page and of the terminal, with how long each is shown."""

    def __init__(self, browser: Browser, scheme: Literal["light", "dark"], url: str) -> None:
        self._scheme = scheme
        self._overview, self._terminal = (self._page(browser) for _ in range(2))
        self._overview.goto(url)
        self._overview.get_by_test_id("stGraphVizChart").last.wait_for(timeout=300_000)
        self._frames: list[tuple[Image.Image, int]] = []

    def _page(self, browser: Browser) -> Page:
        return browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]}, color_scheme=self._scheme)

    def overview(self, milliseconds: int) -> None:
        self._add(self._overview, milliseconds)

    def terminal(self, text: str, milliseconds: int) -> None:
        background, colour, prompt = THEMES[self._scheme]
        lines = re.sub(r"(?m)^(\$ .*)$", rf'<b style="color: {prompt}">\1</b>', escape(text, quote=False))
        style = f"margin: 0; padding: 32px; background: {background}; color: {colour}; font: 19px/1.45 'DejaVu Sans Mono', monospace; white-space: pre-wrap"
        self._terminal.set_content(f'<body style="margin: 0; background: {background}"><pre style="{style}">{lines}</pre>')
        self._add(self._terminal, milliseconds)

    def _add(self, page: Page, milliseconds: int) -> None:
        picture = Image.open(BytesIO(page.screenshot())).convert("RGB").resize(SHOWN, Image.Resampling.LANCZOS)
        self._frames.append((picture, milliseconds))

    def save(self) -> None:
        pictures, milliseconds = zip(*self._frames, strict=True)
        path = PICTURES / f"verified{SCHEMES[self._scheme]}.webp"
        pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=milliseconds, loop=0, quality=70, method=6)
        sys.stdout.write(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1000} kB, {sum(milliseconds) / 1000:.0f} s\n")


def output(command: str) -> str:
    """What `command` prints."""
    wide = {**os.environ, "COLUMNS": str(COLUMNS)}
    ran = subprocess.run(["bash", "-c", command], cwd=ROOT, env=wide, capture_output=True, text=True, check=False)
    return ran.stdout + ran.stderr


def states() -> set[str]:
    rows = json.loads(output(f"{sys.executable} -m streamgauge.cli status --format json"))
    return {row["state"] for row in rows}


def main() -> None:
    """Records the run, and writes the animations."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    url = dashboard_url(Settings.from_environment())
    kill, status, verify = commands()
    with sync_playwright() as playwright:
        browser = chromium(playwright)
        recordings = [Recording(browser, scheme, url) for scheme in SCHEMES]

        def page(milliseconds: int) -> None:
            for recording in recordings:
                recording.overview(milliseconds)

        def terminal(text: str, milliseconds: int) -> None:
            for recording in recordings:
                recording.terminal(text, milliseconds)

        page(2500)
        terminal("$ ", 700)
        terminal(f"$ {kill}", 1500)
        shown = f"$ {kill}\n{output(kill)}"
        while "running" in states():
            time.sleep(POLL_SECONDS)
        page(3000)
        terminal(f"{shown}$ {status}", 1200)
        terminal(f"{shown}$ {status}\n{output(status)}", 4500)
        while states() - {"running", "idle"}:
            time.sleep(POLL_SECONDS)
        page(3000)
        terminal(f"$ {verify}", 1200)
        terminal(f"$ {verify}\n{output(verify)}$ ", 7000)
        page(3000)
        for recording in recordings:
            recording.save()
        browser.close()


if __name__ == "__main__":
    main()
