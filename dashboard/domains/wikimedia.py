"""Wikimedia edits: bots and humans, the busiest wikis, and bytes added and removed.

The windows of wikimedia.processed overlap, so an edit is in more than one of them. They are shown one by one and never added up. The
windows of wikimedia-wiki-stats are minutes that do not overlap, so their sums are sums of edits.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from operator import itemgetter

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from contract.domains.wikimedia import DOMAIN, WIKIMEDIA_PROCESSED, WIKIMEDIA_WIKI_STATS
from dashboard import charts, formats, page_head
from dashboard.domains import wikimedia_stream
from dashboard.drill_down import only, show_clickable
from dashboard.glance import Glance
from dashboard.origin import Origin
from dashboard.periods import Period, choose_period, go_to
from dashboard.reading.reader import follow
from dashboard.windows import frame_of, newest, per_window
from infrastructure.kafka.follower import Snapshot, per_snapshot
from infrastructure.rows import Row
from infrastructure.settings import Settings
from infrastructure.text import duration, size_text

TOPIC, WIKIS_TOPIC = WIKIMEDIA_PROCESSED, WIKIMEDIA_WIKI_STATS
IN_WINDOWS = Origin(TOPIC, "wikimedia-edit-stats", "edit_stats", "pipeline/domains/wikimedia.py")
BY_WIKI = Origin(WIKIS_TOPIC, "wikimedia-wiki-stats", "wiki_stats", "pipeline/domains/wikimedia.py")
BOT, HUMAN = "Bot", "Human"
HORIZON = timedelta(hours=24)
"""How far back the page looks from the newest window. The topics keep every window until it expires."""
MAX_RANKING, _FEW, _QUARTER = 10, 5, timedelta(minutes=15)
_PERIODS = {
    "15 min": _QUARTER,
    "1 hour": timedelta(hours=1),
    "6 hours": timedelta(hours=6),
    "24 hours": timedelta(hours=24),
}
_LINES = {HUMAN: "humans", BOT: "bots"}
_EDITS, _AMOUNTS = ("start", "end", "requested_by", "counts"), ("edits", "bytes_added", "bytes_removed")
_NOTHING, _MOMENT = "\N{EN DASH}", "DD MMM HH:mm:ss"
_WAITING = (
    "The numbers appear here once the pipeline has counted an edit. "
    "`streamgauge demo` starts everything: a producer of edits, the pipeline, and the rest."
)


@per_snapshot
def edits_of(snapshot: Snapshot) -> pd.DataFrame:
    """One row per window, in order: start, end (UTC), bots, humans, edits."""
    frame = frame_of(newest(snapshot.rows, HORIZON), _EDITS)
    table = frame.pivot_table(index=["start", "end"], columns="requested_by", values="counts", aggfunc="sum", fill_value=0)
    table = table.reindex(columns=[BOT, HUMAN], fill_value=0).rename(columns={BOT: "bots", HUMAN: "humans"}).astype("int64")
    table.columns.name = None
    return table.assign(edits=table["bots"] + table["humans"]).reset_index()


@per_snapshot
def wikis_of(snapshot: Snapshot) -> pd.DataFrame:
    """One row per wiki and minute: wiki, start, end (UTC), edits, bytes_added, bytes_removed."""
    return _wikis(newest(snapshot.rows, HORIZON))


def _wikis(rows: Sequence[Row]) -> pd.DataFrame:
    frame = frame_of(rows, ("wiki", "start", "end", *_AMOUNTS))
    return frame.groupby(["wiki", "start", "end"], observed=True)[list(_AMOUNTS)].sum().reset_index()


def glance() -> Glance | None:
    """The newest minute, and the busiest wikis of the last 15."""
    return _glance_of(follow(page_head.dashboard_settings().kafka, WIKIS_TOPIC).snapshot)


@per_snapshot
def _glance_of(snapshot: Snapshot) -> Glance | None:
    rows = newest(snapshot.rows, 2 * _QUARTER)
    if not rows:
        return None
    last = max(rows, key=itemgetter("start"))
    *before, now = per_window(rows, "edits", last["end"] - last["start"])
    quarter = Period(pd.Timestamp(last["end"] - _QUARTER), pd.Timestamp(last["end"]))
    return Glance(
        "Edits in the newest minute",
        formats.count(now),
        f"{formats.window(last['start'], last['end'])} UTC",
        BY_WIKI,
        before,
        lambda: charts.thumbnail(_ranked(busiest(_wikis(rows), quarter).head(_FEW))),
        "Bars: edits in the last 15 minutes, by wiki",
    )


def whole(edits: pd.DataFrame) -> pd.DataFrame:
    """The windows that are over: only late edits can still fall into them."""
    return edits[edits["end"] <= edits["start"].max()]


def bots_and_humans(edits: pd.DataFrame) -> pd.DataFrame:
    """Counts per window, without adding windows up: start, end, name, count; 0 in windows without edits between others."""
    if edits.empty:
        return pd.DataFrame(columns=["start", "end", "name", "count"])
    length, slide = edits["end"].iloc[-1] - edits["start"].iloc[-1], edits["start"].diff().mode().min()
    if len(edits) > 1 and slide >= pd.Timedelta(seconds=1):
        # Windows begin at multiples of their slide. One that does not, of another program, stays between them.
        edits = edits.groupby("start")[["bots", "humans"]].last()  # of windows of two lengths, as after a change in the code
        first, last = edits.index[0].ceil(slide), edits.index[-1]
        starts = pd.date_range(first, last, freq=slide, name="start", unit="ms").union(pd.DatetimeIndex(edits.index))
        edits = edits.reindex(starts, fill_value=0).reset_index()
        edits = edits.assign(end=edits["start"] + length)
    return edits.melt(id_vars=["start", "end"], value_vars=list(_LINES.values()), var_name="name", value_name="count")


def busiest(wikis: pd.DataFrame, period: Period) -> pd.DataFrame:
    """The wikis with the most edits in the period: name, count, before (in as long before that)."""
    counts = period.of(wikis).groupby("wiki")["edits"].sum()
    before = Period(period.start - (period.end - period.start), period.start).of(wikis).groupby("wiki")["edits"].sum()
    ranking = pd.DataFrame({"name": counts.index, "count": counts.to_numpy()})
    ranking = ranking.sort_values(["count", "name"], ascending=[False, True]).head(MAX_RANKING)
    return ranking.assign(before=ranking["name"].map(before).fillna(0).astype("int64"))


def bytes_by_minute(wikis: pd.DataFrame) -> pd.DataFrame:
    """The bytes gained and lost by all wikis per minute: start, end, gained, lost (bytes, from 0)."""
    sums = wikis.groupby(["start", "end"])[["bytes_added", "bytes_removed"]].sum().reset_index()
    return sums.rename(columns={"bytes_added": "gained", "bytes_removed": "lost"})


@page_head.refreshing
def page() -> None:
    settings = page_head.dashboard_settings()
    snapshots = page_head.snapshots_under(DOMAIN.title, (TOPIC, WIKIS_TOPIC), _WAITING)
    if not snapshots:
        return
    of_edits, of_wikis = snapshots
    by_source, by_wiki, by_period = st.columns([2, 2, 3])
    with by_source:
        wikimedia_stream.show_source(settings, datetime.now(UTC))
    names = by_wiki.multiselect(
        "Wikis, for what is counted by wiki",
        sorted(wikis_of(of_wikis)["wiki"].unique()),
        placeholder="all",
        key="wiki",
        bind="query-params",
    )
    period = choose_period(by_period, pd.concat([edits_of(of_edits), wikis_of(of_wikis)]), _PERIODS, "15 min")
    # Either topic may be empty or unreachable. The other one's half of the page is then shown alone.
    if of_edits.rows:
        _show_totals(edits_of(of_edits), settings)
    upper, lower = st.columns([3, 2]), st.columns([3, 2])
    if of_edits.rows:
        _show_bots_and_humans(upper[0], of_edits, period)
        _show_windows(lower[1], period.of(edits_of(of_edits)))
    if of_wikis.rows:
        _show_busiest(upper[1], of_wikis, period, tuple(names))
        _show_bytes(lower[0], of_wikis, period, tuple(names))


@per_snapshot
def of_these(snapshot: Snapshot, names: tuple[str, ...]) -> pd.DataFrame:
    """The rows of these wikis; none are all."""
    wikis = wikis_of(snapshot)
    return wikis[wikis["wiki"].isin(names)] if names else wikis


@per_snapshot
def lines_chart(snapshot: Snapshot, period: Period) -> charts.Spec:
    over = bots_and_humans(period.of(whole(edits_of(snapshot))))
    return charts.lines(over, names=list(_LINES.values()), count_title="edits in the window", name_title="by")


@per_snapshot
def busiest_chart(snapshot: Snapshot, period: Period, names: tuple[str, ...]) -> charts.Spec:
    return _ranked(busiest(of_these(snapshot, names), period))


def _ranked(ranking: pd.DataFrame) -> charts.Spec:
    return charts.ranked_bars(ranking, name_title="wiki", count_title="edits")


@per_snapshot
def bytes_of(snapshot: Snapshot, period: Period, names: tuple[str, ...]) -> tuple[charts.Spec, str]:
    """The chart of `bytes_by_minute`, and its sums as text."""
    wikis = period.of(of_these(snapshot, names))
    minutes = bytes_by_minute(wikis)
    sums = (
        f"{size_text(int(minutes['gained'].sum()))} added, {size_text(int(minutes['lost'].sum()))} removed "
        f"by {formats.several(int(wikis['edits'].sum()), 'edit', 'edits')}"
    )
    return charts.gains_and_losses(minutes, gain="added", loss="removed", title="bytes a minute"), sums


def _show_totals(edits: pd.DataFrame, settings: Settings) -> None:
    now, last = datetime.now(UTC), edits.iloc[-1]
    fills = ("Newest window, so far", formats.count(last["edits"]), _begun(last["start"], now))
    totals = [fills, *_last_whole(whole(edits)), wikimedia_stream.lag(settings, now)]
    page_head.show_totals(totals)


def _last_whole(over: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Label, number and meaning of the newest finished window's count and of the bots' share of it."""
    label, share_label = "Last whole window", "Made by bots"
    if over.empty:
        return [(label, _NOTHING, "none is over yet"), (share_label, _NOTHING, "none is over yet")]
    window = over.iloc[-1]
    bots, edits = int(window["bots"]), int(window["edits"])
    share = f"{bots / edits:.0%}" if edits else _NOTHING
    return [
        (label, formats.count(edits), formats.seconds_window(window["start"], window["end"])),
        (share_label, share, f"{formats.count(bots)} of {formats.several(edits, 'edit', 'edits')}"),
    ]


def _begun(start: datetime, now: datetime) -> str:
    """The age of the newest window. A new window starts every slide, so in a current stream it is never much older than that."""
    return f"begun {duration(now - start)} ago" if start <= now else f"begins in {duration(start - now)}"


def _show_bots_and_humans(column: DeltaGenerator, snapshot: Snapshot, period: Period) -> None:
    newest = edits_of(snapshot).iloc[-1]
    caption = (
        f"Edits in each window of {(newest['end'] - newest['start']).total_seconds():g} s that is over, at its end, UTC. "
        "Windows overlap, so an edit counts in more than one: do not add them up."
    )
    with page_head.panel(column, "Bots and humans", caption, origin=IN_WINDOWS):
        alt = "Two lines: edits by bots and by humans, window by window"
        st.vega_lite_chart(lines_chart(snapshot, period), width="stretch", alt=alt)


def _show_busiest(column: DeltaGenerator, snapshot: Snapshot, period: Period, names: tuple[str, ...]) -> None:
    with page_head.panel(
        column, "Busiest wikis", "Edits in the period. Pale: as long before that. A click chooses the wiki.", origin=BY_WIKI, of=snapshot
    ):
        show_clickable(busiest_chart(snapshot, period, names), key="busiest", alt="Bars: edits by wiki", on_click=only("wiki", "name"))


def _show_bytes(column: DeltaGenerator, snapshot: Snapshot, period: Period, names: tuple[str, ...]) -> None:
    chart, sums = bytes_of(snapshot, period, names)
    wikis = formats.plain(", ".join(names)) or "All wikis"
    caption = f"{wikis}, by the minute of the edit, UTC: {sums}. A click chooses the minute."
    with page_head.panel(column, "Bytes added and removed", caption, origin=BY_WIKI):
        alt = "Bars: bytes added upwards and removed downwards, by minute"
        show_clickable(chart, key="bytes", alt=alt, on_click=go_to)


def _show_windows(column: DeltaGenerator, edits: pd.DataFrame) -> None:
    with page_head.panel(column, "Windows", f"As in topic {TOPIC.name}. The newest still grow.", origin=IN_WINDOWS):
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
