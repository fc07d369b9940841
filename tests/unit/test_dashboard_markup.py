"""Texts of topics are other people's: no page has a way to make markup of them."""

import re
from pathlib import Path

import dashboard

MARKUP = re.compile(r"unsafe_allow_html|unsafe_allow_javascript|st\.html\b|components\.(?:v1|v2|html|iframe)")


def test_no_page_can_render_html():
    sources = Path(dashboard.__file__).parent.rglob("*.py")
    assert [f"{path.name}: {found[0]}" for path in sources if (found := MARKUP.search(path.read_text()))] == []
