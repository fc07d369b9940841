"""Opens a page in the user's browser."""

import os
import sys
import threading
import webbrowser

from contract.process.waiting import Say


def open_page(url: str, say: Say) -> None:
    """Opens `url` without waiting for the browser. Says so if there is no screen for one, as on a server."""
    if sys.platform != "darwin" and not any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")):
        say(f"there is no screen for a browser here; open {url}")
        return
    threading.Thread(target=webbrowser.open, args=[url], daemon=True).start()  # some browsers end only when they are closed
