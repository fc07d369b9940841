"""The part of the Nest page on cameras: which are offline, for how long, and the latest alerts."""

from collections.abc import Collection

import pandas as pd
import streamlit as st

from contract.domains.nest import NEST_CAMERA_ALERTS, NEST_CAMERA_STATUS
from contract.kafka.cluster import KafkaCluster
from contract.kafka.result_table import Decode, Row, decode_json, moment
from contract.text import duration
from dashboard import formats
from dashboard.page_head import panel
from dashboard.reading.reader import follow

ROWS_LISTED = 200
_TIME = st.column_config.DatetimeColumn("Since (UTC)", format="YYYY-MM-DD HH:mm", timezone="UTC")
_REASONS = {"silent": "silent", "is_online is false": "says so"}
_ALERTS = ("offline", "flapping", "back")


def decode_status(value: bytes) -> Row:
    """device_id, zip_code, state, reason, since, last_seen (UTC) of one record. Raises KeyError, TypeError or ValueError for any other."""
    row = decode_json(value)
    return {
        **{name: row[name] for name in ("device_id", "zip_code", "state", "reason")},
        **{name: moment(row[name]) for name in ("since", "last_seen")},
    }


def decode_alert(value: bytes) -> Row:
    """device_id, zip_code, alert, since (UTC) of one record. Raises KeyError, TypeError or ValueError for any other."""
    row = decode_json(value)
    return {**{name: row[name] for name in ("device_id", "zip_code", "alert")}, "since": moment(row["since"])}


def offline_now(cameras: pd.DataFrame) -> pd.DataFrame:
    """The cameras that are offline, longest first, with the column `lasts`: up to the newest time in the table.

    A simulation plays event time faster than the clock, so the clock cannot tell how long a camera has been offline.
    """
    offline = cameras[cameras["state"] == "offline"].sort_values("since")
    now = cameras[["since", "last_seen"]].max().max()
    return offline.assign(lasts=[duration((now - since).to_pytimedelta()) for since in offline["since"]])


def show_cameras(kafka: KafkaCluster, zip_codes: Collection[str]) -> None:
    """Draws both tables, once there is a camera in `zip_codes`; none are all."""

    def rows(topic: str, decode: Decode) -> list[Row]:
        return [row for row in follow(kafka, topic, decode).snapshot.rows if not zip_codes or row["zip_code"] in zip_codes]

    cameras, alerts = rows(NEST_CAMERA_STATUS.name, decode_status), rows(NEST_CAMERA_ALERTS.name, decode_alert)
    if not cameras:
        return
    left, right = st.columns(2)
    with panel(left, "Cameras offline"):
        _show_offline(pd.DataFrame(cameras))
    with panel(right, "Camera alerts", "The last alert of each incident, newest first."):
        _show_alerts(pd.DataFrame(alerts, columns=["device_id", "zip_code", "alert", "since"]))


def _show_offline(cameras: pd.DataFrame) -> None:
    offline = offline_now(cameras)
    st.caption(f"{formats.count(len(offline))} of {formats.several(len(cameras), 'camera', 'cameras')}, up to the newest change.")
    st.dataframe(
        offline.assign(reason=offline["reason"].map(_REASONS)).head(ROWS_LISTED)[["device_id", "zip_code", "since", "lasts", "reason"]],
        hide_index=True,
        height=260,
        column_config={"device_id": "Camera", "zip_code": "Zip code", "since": _TIME, "lasts": "For", "reason": "Why"},
    )


def _show_alerts(alerts: pd.DataFrame) -> None:
    kinds = st.pills("Alerts", _ALERTS, selection_mode="multi", key="nest-alerts", label_visibility="collapsed")
    listed = alerts[alerts["alert"].isin(kinds or _ALERTS)].sort_values("since", ascending=False)
    st.dataframe(
        listed.head(ROWS_LISTED)[["since", "device_id", "zip_code", "alert"]],
        hide_index=True,
        height=210,
        column_config={"since": _TIME, "device_id": "Camera", "zip_code": "Zip code", "alert": "Alert"},
    )
