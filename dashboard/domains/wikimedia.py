"""Wikimedia edits: bots and humans, the busiest wikis, and bytes added and removed.

The windows of wikimedia.processed overlap, so an edit is in more than one of them. They are shown one by one and never added up. The
windows of wikimedia-wiki-stats are minutes that do not overlap, so their sums are sums of edits.
"""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from contract.domains.wikimedia import DOMAIN, WIKIMEDIA_PROCESSED, WIKIMEDIA_WIKI_STATS
from contract.kafka.result_table import Decode, Row, decode_json
from contract.registry.client import SchemaRegistry, avro_rows
from contract.registry.server import RegistryServer
from contract.settings import Settings
from contract.text import duration, size_text
from dashboard import charts, formats, page_head
from dashboard.domains import wikimedia_stream
from dashboard.reading.reader import Snapshot
from dashboard.windows import frame_of, newest, window_of

TOPIC, WIKIS_TOPIC = WIKIMEDIA_PROCESSED.name, WIKIMEDIA_WIKI_STATS.name
BOT, HUMAN = "Bot", "Human"
HORIZON = timedelta(hours=24)
"""How far back the page looks from the newest window. The topics keep every window until it expires."""
LARGEST_RANKING = 10
_PERIODS = {
    "15 minutes": timedelta(minutes=15),
    "1 hour": timedelta(hours=1),
    "6 hours": timedelta(hours=6),
    "24 hours": timedelta(hours=24),
}
_LINES = {HUMAN: "humans", BOT: "bots"}
_EDITS, _AMOUNTS = ("start", "end", "requested_by", "counts"), ("edits", "bytes_added", "bytes_removed")
_NOTHING, _MOMENT = "\N{EN DASH}", "DD MMM HH:mm:ss"
_WAITING = (
    "As soon as the pipeline has counted an edit, the numbers appear here by themselves. "
    "`streamgauge demo` starts a producer of edits, pipeline and all."
)


@lru_cache(maxsize=1)
def edits_decoder(registry: RegistryServer) -> Decode:
    """Decodes a record of wikimedia.processed to start, end (UTC), requested_by, counts.

    The decoder raises RegistryAway when it needs a schema and the registry cannot be reached, and KeyError, TypeError or ValueError for any
    other record.
    """
    of_avro = avro_rows(SchemaRegistry(registry))

    def decode(value: bytes) -> Row:
        row = of_avro(value)
        if row["requested_by"] not in {BOT, HUMAN} or not isinstance(row["counts"], int):
            msg = (
                f"expected {BOT} or {HUMAN} and a whole number, found {str(row['requested_by'])[:40]!r} and {type(row['counts']).__name__}"
            )
            raise TypeError(msg)
        return {**window_of(row), "requested_by": row["requested_by"], "counts": row["counts"]}

    return decode


def decode_wiki(value: bytes) -> Row:
    """wiki, start, end (UTC), edits, bytes_added, bytes_removed of one record.

    Raises KeyError, TypeError or ValueError for any other record.
    """
    row = decode_json(value)
    amounts = {name: row[name] for name in _AMOUNTS}
    if not isinstance(row["wiki"], str) or not all(isinstance(amount, int) for amount in amounts.values()):
        msg = f"expected wiki as a text and {', '.join(_AMOUNTS)} as whole numbers, found {', '.join(type(row[name]).__name__ for name in ('wiki', *_AMOUNTS))}"
        raise TypeError(msg)
    return {"wiki": row["wiki"], **window_of(row), **amounts}


@lru_cache(maxsize=1)
def edits_of(snapshot: Snapshot) -> pd.DataFrame:
    """One row per window, in order: start, end (UTC), bots, humans, edits. Computed once per snapshot; do not modify it."""
    frame = _frame(snapshot, _EDITS)
    table = frame.pivot_table(index=["start", "end"], columns="requested_by", values="counts", aggfunc="sum", fill_value=0)
    table = table.reindex(columns=[BOT, HUMAN], fill_value=0).rename(columns={BOT: "bots", HUMAN: "humans"}).astype("int64")
    table.columns.name = None
    return table.assign(edits=table["bots"] + table["humans"]).reset_index()


@lru_cache(maxsize=1)
def wikis_of(snapshot: Snapshot) -> pd.DataFrame:
    """One row per wiki and minute: wiki, start, end (UTC), edits, bytes_added, bytes_removed.

    Computed once per snapshot and shared by all browsers; do not modify it.
    """
    frame = _frame(snapshot, ("wiki", "start", "end", *_AMOUNTS))
    return frame.groupby(["wiki", "start", "end"], observed=True)[list(_AMOUNTS)].sum().reset_index()


def _frame(snapshot: Snapshot, columns: tuple[str, ...]) -> pd.DataFrame:
    # Filtered before pandas, because old rows may outnumber the shown ones by a hundred to one.
    earliest = max((row["end"] for row in snapshot.rows), default=datetime.now(UTC)) - HORIZON
    return frame_of((row for row in snapshot.rows if row["end"] > earliest), columns)


def whole(edits: pd.DataFrame) -> pd.DataFrame:
    """The windows that are over: only late edits can still fall into them."""
    return edits[edits["end"] <= edits["start"].max()]


def bots_and_humans(edits: pd.DataFrame) -> pd.DataFrame:
    """Counts per window, without adding windows up: start, end, name, count; 0 in windows without edits between others."""
    if edits.empty:
        return pd.DataFrame(columns=["start", "end", "name", "count"])
    length, slide = edits["end"].iloc[0] - edits["start"].iloc[0], edits["start"].diff().min()
    if len(edits) > 1 and slide > pd.Timedelta(0):
        starts = pd.date_range(edits["start"].min(), edits["start"].max(), freq=slide, name="start", unit="ms")
        edits = edits.set_index("start")[["bots", "humans"]].reindex(starts, fill_value=0).reset_index()
        edits = edits.assign(end=edits["start"] + length)
    return edits.melt(id_vars=["start", "end"], value_vars=list(_LINES.values()), var_name="name", value_name="count")


def busiest(wikis: pd.DataFrame, period: timedelta) -> pd.DataFrame:
    """The wikis with the most edits in the newest `period`: name, count, before (in the same time before that)."""
    end = wikis["end"].max()
    counts = wikis[wikis["end"] > end - period].groupby("wiki")["edits"].sum()
    before = wikis[(wikis["end"] > end - 2 * period) & (wikis["end"] <= end - period)].groupby("wiki")["edits"].sum()
    ranking = pd.DataFrame({"name": counts.index, "count": counts.to_numpy()})
    ranking = ranking.sort_values(["count", "name"], ascending=[False, True]).head(LARGEST_RANKING)
    return ranking.assign(before=ranking["name"].map(before).fillna(0).astype("int64"))


def bytes_by_minute(wikis: pd.DataFrame) -> pd.DataFrame:
    """The bytes gained and lost by all wikis per minute: start, end, gained, lost (bytes, from 0)."""
    sums = wikis.groupby(["start", "end"])[["bytes_added", "bytes_removed"]].sum().reset_index()
    return sums.rename(columns={"bytes_added": "gained", "bytes_removed": "lost"})


@page_head.refreshing
def page() -> None:
    """Draws the page."""
    settings = page_head.settings_or_error()
    if settings is None:
        return
    decoders = {TOPIC: edits_decoder(settings.registry), WIKIS_TOPIC: decode_wiki}
    is_recorded = wikimedia_stream.is_recorded(settings)
    snapshots = page_head.snapshots_under(DOMAIN.title, settings, decoders, _WAITING, is_recorded=is_recorded)
    if not snapshots:
        return
    edits, wikis = (of(snapshot) if snapshot.rows else None for of, snapshot in zip((edits_of, wikis_of), snapshots, strict=True))
    by_source, by_period = st.columns([3, 2], vertical_alignment="bottom")
    with by_source:
        wikimedia_stream.show_source(settings, datetime.now(UTC))
    period = (
        by_period.segmented_control("Newest", list(_PERIODS), default="15 minutes", required=True, key="period", bind="query-params")
        or "15 minutes"
    )
    if edits is not None:
        _show_totals(edits, settings)
    # Either topic may be empty or unreachable. The other one's half of the page is then shown alone.
    upper, lower = st.columns([3, 2]), st.columns([3, 2])
    if edits is not None:
        _show_bots_and_humans(upper[0], newest(edits, _PERIODS[period]))
        _show_windows(lower[1], newest(edits, _PERIODS[period]))
    if wikis is not None:
        _show_busiest(upper[1], wikis, period)
        _show_bytes(lower[0], newest(wikis, _PERIODS[period]))


def _panel(column: DeltaGenerator) -> DeltaGenerator:
    return column.container(border=True, height="stretch", gap="xsmall")


def _show_totals(edits: pd.DataFrame, settings: Settings) -> None:
    now, last = datetime.now(UTC), edits.iloc[-1]
    fills = (
        "Newest window, so far",
        formats.count(last["edits"]),
        f"{formats.seconds_window(last['start'], last['end'])}, {_begun(last['start'], now)}",
    )
    totals = [fills, *_last_whole(whole(edits)), wikimedia_stream.lag(settings, now)]
    page_head.show_totals(totals)


def _last_whole(over: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Label, number and meaning of the newest finished window's count and of the bots' share of it."""
    label, share_label = "Last whole window", "Made by bots"
    if over.empty:
        return [(label, _NOTHING, "none is over yet"), (share_label, _NOTHING, "none is over yet")]
    window = over.iloc[-1]
    bots, humans, edits = int(window["bots"]), int(window["humans"]), int(window["edits"])
    share = f"{bots / edits:.0%}" if edits else _NOTHING
    return [
        (label, formats.count(edits), formats.seconds_window(window["start"], window["end"])),
        (share_label, share, f"{formats.count(bots)} by bots, {formats.count(humans)} by humans"),
    ]


def _begun(start: datetime, now: datetime) -> str:
    """The age of the newest window. A new window starts every slide, so in a current stream it is never much older than that."""
    return f"begun {duration(now - start)} ago" if start <= now else f"ahead of the clock by {duration(start - now)}"


def _show_bots_and_humans(column: DeltaGenerator, edits: pd.DataFrame) -> None:
    over = whole(edits)
    length = edits["end"].iloc[-1] - edits["start"].iloc[-1]
    with _panel(column):
        st.header("Bots and humans", anchor=False)
        st.caption(
            f"Edits in each window of {length.total_seconds():g} s that is over, at its end, UTC. "
            "Windows overlap, so neighbours count the same edits: read each by itself."
        )
        chart = charts.lines(bots_and_humans(over), names=list(_LINES.values()), count_title="edits in the window", name_title="by")
        st.altair_chart(chart, width="stretch", alt="Two lines: edits by bots and by humans, window by window")


def _show_busiest(column: DeltaGenerator, wikis: pd.DataFrame, period: str) -> None:
    with _panel(column):
        st.header("Busiest wikis", anchor=False)
        st.caption(f"Edits in the newest {period}. Pale: as long before that.")
        chart = charts.ranked_bars(busiest(wikis, _PERIODS[period]), name_title="wiki", count_title="edits")
        st.altair_chart(chart, width="stretch", alt="Bars: edits by wiki")


def _show_bytes(column: DeltaGenerator, wikis: pd.DataFrame) -> None:
    minutes = bytes_by_minute(wikis)
    with _panel(column):
        st.header("Bytes added and removed", anchor=False)
        st.caption(
            f"All wikis, by the minute of the edit, UTC: {size_text(int(minutes['gained'].sum()))} added, "
            f"{size_text(int(minutes['lost'].sum()))} removed by {formats.several(int(wikis['edits'].sum()), 'edit', 'edits')}."
        )
        chart = charts.gains_and_losses(minutes, gain="added", loss="removed", title="bytes a minute")
        st.altair_chart(chart, width="stretch", alt="Bars: bytes added upwards and removed downwards, by minute")


def _show_windows(column: DeltaGenerator, edits: pd.DataFrame) -> None:
    with _panel(column):
        st.header("Windows", anchor=False)
        st.caption("As in topic wikimedia.processed. The newest still grow.")
        st.dataframe(
            edits.sort_values("start", ascending=False)[["start", "end", "bots", "humans"]],
            hide_index=True,
            height=298,
            column_config={
                "start": st.column_config.DatetimeColumn("From (UTC)", format=_MOMENT, timezone="UTC"),
                "end": st.column_config.DatetimeColumn("To (UTC)", format=_MOMENT, timezone="UTC"),
                "bots": st.column_config.NumberColumn("Bots", format="localized"),
                "humans": st.column_config.NumberColumn("Humans", format="localized"),
            },
        )
