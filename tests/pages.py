"""Pages drawn by Streamlit's AppTest."""

from streamlit.testing.v1 import AppTest


def drawn(app: AppTest) -> AppTest:
    """The page, drawn once more. Fails when it fails, and when a text that it shows could be HTML: texts of topics are other people's."""
    app.run()
    assert not app.exception, f"the page failed: {[error.value for error in app.exception]}"
    assert not [element.value for element in (*app.markdown, *app.caption) if element.allow_html], "no text of a page may be HTML"
    return app
