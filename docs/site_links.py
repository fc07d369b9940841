"""A hook of MkDocs: pages outside docs/ are pages of the site too, below repository/; a link to any other file leads to a copy, below files/."""

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    "benchmarks/NOTES.md",
    *(str(page.relative_to(ROOT)) for page in (ROOT / "workshop").rglob("*.md")),
]
_LINK = re.compile(r"\[([^\]]*)\]\((?!https?:)([^)#\s]+)(#[^)]*)?\)")
_PICTURE = re.compile(r'(src(?:set)?=")([^":]+)(")')


def on_files(files: Any, config: Any) -> Any:  # noqa: ANN401 - MkDocs's own
    """The site's files with the pages outside docs/."""
    from mkdocs.structure.files import File

    for page in PAGES:
        files.append(File.generated(config, place_of(page), content=(ROOT / page).read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:  # noqa: ANN401 - MkDocs's own
    """The page with its links changed, after the files that they lead to have been copied."""
    from mkdocs.structure.files import File

    uri = page.file.src_uri
    path = uri.removeprefix("repository/") if uri.startswith("repository/") else f"docs/{uri}"
    for target in (_target(path, link[2]) for link in _LINK.finditer(markdown)):
        place = place_of(target)
        if place and place.startswith("files/") and files.get_file_from_path(place) is None:
            files.append(File.generated(config, place, content=(ROOT / target).read_text()))
    return translated(markdown, path)


def place_of(path: str) -> str | None:
    """Where a file of the repository is on the site. None for a folder."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path in PAGES:
        return f"repository/{path}"
    return f"files/{path}.txt" if (ROOT / path).is_file() else None


def translated(markdown: str, path: str) -> str:
    """The text of the page `path` with the links that it has on the site. A link to a folder becomes text."""
    here = posixpath.dirname(place_of(path) or "")

    def link(found: re.Match[str]) -> str:
        text, target, anchor = found[1], _target(path, found[2]), found[3] or ""
        place = place_of(target)
        if not (ROOT / target).exists():
            return found[0]  # MkDocs reports it
        return text if place is None else f"[{text}]({posixpath.relpath(place, here or '.')}{anchor})"

    def picture(found: re.Match[str]) -> str:
        place = place_of(_target(path, found[2]))
        return f"{found[1]}{posixpath.relpath(place or found[2], here or '.')}{found[3]}"

    return _PICTURE.sub(picture, _LINK.sub(link, markdown))


def _target(path: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
