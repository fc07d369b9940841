"""The part of the Nest page on cameras: which are offline, for how long, and the latest alerts."""

from collections.abc import Collection

import pandas as pd
import streamlit as st

from contract.domains.nest import NEST_CAMERA_ALERTS, NEST_CAMERA_STATUS
from dashboard import formats
from dashboard.origin import Origin
from dashboard.page_head import panel
from dashboard.reading.reader import follow
from dashboard.reading.states import show_problem
from infrastructure.kafka.follower import Snapshot
from infrastructure.text import duration

ROWS_LISTED = 200
OFFLINE, ALERTED = (
    Origin(topic, "nest-camera-status", "camera_status", "pipeline/state/cameras.py") for topic in (NEST_CAMERA_STATUS, NEST_CAMERA_ALERTS)
)
_TIME = st.column_config.DatetimeColumn("Since (UTC)", format="YYYY-MM-DD HH:mm", timezone="UTC")
_CAMERA = st.column_config.TextColumn("Camera", width=150)
_REASONS = {"silent": "silent", "is_online is false": "says so"}
_ALERTS = ("offline", "flapping", "back")


def offline_now(cameras: pd.DataFrame) -> pd.DataFrame:
    """The cameras that are offline, longest first, with the column `lasts`: up to the newest time in the table.

    A simulation plays event time faster than the clock, so the clock cannot tell how long a camera has been offline.
    """
    offline = cameras[cameras["state"] == "offline"].sort_values("since")
    now = cameras[["since", "last_seen"]].max().max()
    return offline.assign(lasts=[duration(pd.Timedelta(now - since).to_pytimedelta()) for since in offline["since"]])


def show_cameras(of_page: Snapshot, zip_codes: Collection[str]) -> None:
    """Draws both tables, once there is a camera in `zip_codes`; none are all."""
    followed = tuple(follow(of_page.kafka, topic).snapshot for topic in (NEST_CAMERA_STATUS, NEST_CAMERA_ALERTS))
    for snapshot in followed:
        show_problem(snapshot, of_page)
    cameras, alerts = ([row for row in one.rows if not zip_codes or row["zip_code"] in zip_codes] for one in followed)
    if not cameras:
        return
    left, right = st.columns(2)
    with panel(left, "Cameras offline", origin=OFFLINE, of=followed[0]):
        _show_offline(pd.DataFrame(cameras))
    with panel(right, "Camera alerts", "The last alert of each incident, newest first.", origin=ALERTED, of=followed[1]):
        _show_alerts(pd.DataFrame(alerts, columns=["device_id", "zip_code", "alert", "since"]))


def _show_offline(cameras: pd.DataFrame) -> None:
    offline = offline_now(cameras)
    st.caption(f"{formats.count(len(offline))} of {formats.several(len(cameras), 'camera', 'cameras')}, up to the newest change.")
    st.dataframe(
        offline.assign(reason=offline["reason"].map(_REASONS)).head(ROWS_LISTED)[["device_id", "lasts", "reason", "zip_code", "since"]],
        hide_index=True,
        height=260,
        column_config={"device_id": _CAMERA, "zip_code": "Zip code", "since": _TIME, "lasts": "For", "reason": "Why"},
    )


def _show_alerts(alerts: pd.DataFrame) -> None:
    kinds = st.pills("Alerts", _ALERTS, selection_mode="multi", key="alert", bind="query-params", label_visibility="collapsed")
    listed = alerts[alerts["alert"].isin(kinds or _ALERTS)].sort_values("since", ascending=False)
    st.dataframe(
        listed.head(ROWS_LISTED)[["since", "alert", "device_id", "zip_code"]],
        hide_index=True,
        height=210,
        column_config={"since": _TIME, "device_id": _CAMERA, "zip_code": "Zip code", "alert": "Alert"},
    )
