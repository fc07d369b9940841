"""The dashboard: names the pages. `dashboard.server` has the command that serves it."""

from pathlib import Path

import streamlit as st

from dashboard.pages import health, nest, taxi, wikimedia

_HERE = Path(__file__).parent

# Files of its own and not icons by name: those are fetched from the internet.
st.set_page_config(page_title="Streamgauge", page_icon=str(_HERE / "icon.svg"), layout="wide")
st.logo(str(_HERE / "logo.svg"), size="large")
pages = [
    st.Page(nest.page, title="Nest cameras", url_path="nest", default=True),
    st.Page(taxi.page, title="NYC green taxi", url_path="taxi"),
    st.Page(wikimedia.page, title="Wikimedia edits", url_path="wikimedia"),
    st.Page(health.page, title="Health", url_path="health"),
]
st.navigation(pages, position="top").run()
