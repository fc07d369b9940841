"""The head that every page of a story has: its title, how fresh its table is, and what is wrong if something is."""

from datetime import UTC, datetime

import streamlit as st

from dashboard import states
from dashboard.reader import Snapshot, follow
from streamgauge.errors import StreamgaugeError
from streamgauge.result_table import Decode
from streamgauge.settings import Settings


def snapshot_under(title: str, topic: str, decode: Decode, waiting: str) -> Snapshot | None:
    """Draws the head of a page about `topic`; returns the table as it stands, or None while there is nothing to draw below.

    decode: as of result_table. waiting: what an empty topic waits for, and how to start it.
    """
    try:
        settings = Settings.from_environment()
    except StreamgaugeError as error:
        st.error(str(error))
        return None
    snapshot, now = follow(settings.bootstrap_servers, topic, decode).snapshot, datetime.now(UTC)
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        st.title(title, anchor=False, width="content")
        states.show_freshness(snapshot, now)
    states.show_state(snapshot, now, waiting)
    return snapshot if snapshot.rows else None
