"""A hook of MkDocs: on the site, a link to a file of the repository outside docs/ leads to a copy of that file."""

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"\[([^\]]*)\]\(((?:\.\./)+[^)#]+)(#[^)]*)?\)")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:  # noqa: ANN401 - MkDocs's own
    """The page with its links out of docs/ changed. A link to a folder, or to a page that is on no site, becomes text."""
    from mkdocs.structure.files import File

    def changed(link: re.Match[str]) -> str:
        text, target = link[1], posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.file.src_uri), link[2]))
        if target.startswith("docs/"):
            return link[0]
        if not (ROOT / target).exists():
            return link[0]  # MkDocs reports it
        if not (ROOT / target).is_file() or target.endswith(".md"):
            return text
        copy = f"files/{target}.txt"
        if files.get_file_from_path(copy) is None:
            files.append(File.generated(config, copy, content=(ROOT / target).read_text()))
        return f"[{text}]({posixpath.relpath(copy, posixpath.dirname(page.file.src_uri) or '.')})"

    return _LINK.sub(changed, markdown)
