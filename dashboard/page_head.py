"""The head of every domain page: its title, the freshness of its tables, and any problem."""

from collections.abc import Mapping
from datetime import UTC, datetime

import streamlit as st

from contract.errors import StreamgaugeError
from contract.kafka.result_table import Decode
from contract.settings import Settings
from dashboard.reading import states
from dashboard.reading.reader import Snapshot, follow


def settings_or_error() -> Settings | None:
    """The settings. None if they are invalid; the page then shows the error."""
    try:
        return Settings.from_environment()
    except StreamgaugeError as error:
        st.error(str(error))
        return None


def snapshot_under(title: str, topic: str, decode: Decode, waiting: str) -> Snapshot | None:
    """Draws the head of a page about `topic`. Returns the current table, or None while there is nothing to draw below.

    decode: see result_table. waiting: what an empty topic waits for, and how to start it.
    """
    settings = settings_or_error()
    tables = snapshots_under(title, settings, {topic: decode}, waiting) if settings is not None else ()
    return tables[0] if tables else None


def snapshots_under(title: str, settings: Settings, decoders: Mapping[str, Decode], waiting: str) -> tuple[Snapshot, ...]:
    """Draws the head of a page about several topics, the most important first.

    decoders: by topic. Returns the current tables, some of which may be empty; none while all are.
    """
    snapshots = tuple(follow(settings.kafka, topic, decode).snapshot for topic, decode in decoders.items())
    first, now = snapshots[0], datetime.now(UTC)
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        st.title(title, anchor=False, width="content")
        states.show_freshness(first, now)
    has_rows = any(snapshot.rows for snapshot in snapshots)
    states.show_state(first, now, waiting, has_page=not has_rows)
    for other in snapshots[1:]:
        # A problem that all tables share is shown once.
        if states.state_of(other, now) is not states.state_of(first, now) and has_rows:
            states.show_state(other, now, waiting, has_page=False)
        else:
            states.show_unreadable(other)
    return snapshots if has_rows else ()
