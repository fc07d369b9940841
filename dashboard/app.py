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
modules = {domain.name: import_module(f"dashboard.domains.{domain.name}") for domain in DOMAINS}
domain_pages = {domain.name: st.Page(modules[domain.name].page, title=domain.title, url_path=domain.name) for domain in DOMAINS}
glances = {name: module.glance for name, module in modules.items() if hasattr(module, "glance")}
overview_page = st.Page(lambda: overview.page(domain_pages, glances), title="Overview", default=True)
pages = [
    overview_page,
    *domain_pages.values(),
    st.Page(health.page, title="Health", url_path="health"),
    # The default page has no other address than that of the application.
    st.Page(lambda: st.switch_page(overview_page), title="Overview", url_path="overview", visibility="hidden"),
]
st.navigation(pages, position="top").run()
