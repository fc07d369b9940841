"""The dashboard's pages. `dashboard.server` has the command that serves it."""

from importlib import import_module
from pathlib import Path

import streamlit as st

from contract.domains import DOMAINS
from dashboard.health import page as health
from dashboard.overview import page as overview

_HERE = Path(__file__).parent

# Files instead of named icons, which would be fetched from the internet.
st.set_page_config(page_title="Streamgauge", page_icon=str(_HERE / "icon.svg"), layout="wide")
st.logo(str(_HERE / "logo.svg"), size="large")
domain_pages = {
    domain.name: st.Page(import_module(f"dashboard.domains.{domain.name}").page, title=domain.title, url_path=domain.name)
    for domain in DOMAINS
}
pages = [
    st.Page(lambda: overview.page(domain_pages), title="Overview", url_path="overview", default=True),
    *domain_pages.values(),
    st.Page(health.page, title="Health", url_path="health"),
]
st.navigation(pages, position="top").run()
