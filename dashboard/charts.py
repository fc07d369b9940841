"""The charts that pages share. They turn frames into Altair charts. Texts from topics appear only as labels, never as markup."""

from collections.abc import Sequence

import altair as alt
import pandas as pd

OTHERS = "others"
_HEIGHT = 270
_MOST_DOTS = 300
_ACCENT, _INK, _MUTED, _GRID = "#0f766e", "#1f2937", "#6b7280", "#e8ebef"
_CATEGORIES = ("#0f766e", "#3b82f6", "#f59e0b", "#8b5cf6", "#f43f5e")
_QUERY_COLOURS = (*_CATEGORIES, "#84cc16", "#0ea5e9", "#a16207", "#d946ef", "#475569", "#14b8a6", "#ef4444")
_GREY = "#cbd5e1"
_FAINT = "#dfe7ea"
_PADDING = {"left": 0, "top": 4, "right": 6, "bottom": 0}
# Midnight shows the day instead of 00:00, so that charts of several days are readable. Seconds appear only on ticks that have some.
_UTC_TICK = (
    "utcFormat(datum.value, utcseconds(datum.value) ? '%H:%M:%S' : utchours(datum.value) || utcminutes(datum.value) ? '%H:%M' : '%-d %b')"
)
_AGE_TICKS_SECONDS = (0, 10, 60, 600, 3_600, 36_000, 86_400, 864_000, 8_640_000, 86_400_000, 864_000_000)
_AGE_LABEL = (
    "datum.value >= 86400 ? format(datum.value / 86400, ',d') + ' d' : datum.value >= 3600 ? format(datum.value / 3600, 'd') + ' h' : "
    "datum.value >= 60 ? format(datum.value / 60, 'd') + ' min' : format(datum.value, 'd') + ' s'"
)

LARGEST_SERIES = len(_CATEGORIES)
"""The number of series that `stacked_windows` shows by name. More would need colours that are hard to distinguish."""


def ranked_bars(ranking: pd.DataFrame, *, name_title: str, count_title: str) -> alt.LayerChart:
    """Horizontal bars with their numbers, in the order of `ranking`. A pale bar behind each shows the previous count.

    ranking: columns name, count, before (the count of the previous window).
    """
    names = alt.Y(
        "name:N", sort=list(ranking["name"]), title=None, axis=alt.Axis(labelFontSize=13, labelColor=_INK, ticks=False, domain=False)
    )
    width = alt.X("count:Q", title=None, axis=None)
    tooltip = [
        alt.Tooltip("name:N", title=name_title),
        alt.Tooltip("count:Q", title=count_title, format=","),
        alt.Tooltip("before:Q", title="window before", format=","),
    ]
    base = alt.Chart(ranking).encode(y=names, tooltip=tooltip)
    before = base.mark_bar(color=_FAINT, cornerRadiusEnd=3, height={"band": 0.84}).encode(x=alt.X("before:Q", title=None, axis=None))
    bars = base.mark_bar(color=_ACCENT, cornerRadiusEnd=3, height={"band": 0.5}).encode(x=width)
    numbers = base.mark_text(align="left", dx=6, fontSize=13, fontWeight=600, color=_INK).encode(
        x=width, text=alt.Text("count:Q", format=",")
    )
    return alt.layer(before, bars, numbers).properties(height=_HEIGHT, padding=_PADDING).configure_view(stroke=None)


def stacked_windows(series: pd.DataFrame, *, names: Sequence[str], count_title: str, name_title: str, zone: str = "UTC") -> alt.Chart:
    """Stacked bars over time, each as wide as its window. Times are shown in UTC, unconverted, and labelled `zone`.

    series: columns start, end (UTC), name, count. names: the order of the series from the bottom: at most LARGEST_SERIES, then OTHERS.
    """
    ranked = series.assign(rank=series["name"].map({name: rank for rank, name in enumerate(names)})).sort_values("rank")
    # Vega-Lite does not stack bars with both a start and an end on the x axis, so their positions are computed here.
    top = ranked.groupby("start")["count"].cumsum()
    stacked = ranked.assign(bottom=top - ranked["count"], top=top)
    colours = [_GREY if name == OTHERS else _CATEGORIES[rank] for rank, name in enumerate(names)]
    legend = alt.Legend(title=None, orient="top", symbolType="square", labelFontSize=12, columns=len(names), offset=6)
    return (
        alt.Chart(stacked)
        .mark_rect(stroke="white", strokeWidth=0.75)
        .encode(
            x=alt.X(
                "start:T",
                scale=alt.Scale(type="utc"),
                title=None,
                axis=_time_axis(),
            ),
            x2="end:T",
            y=alt.Y(
                "bottom:Q",
                title=count_title,
                axis=_amount_axis(",d"),
            ),
            y2="top:Q",
            color=alt.Color("name:N", sort=list(names), scale=alt.Scale(domain=list(names), range=colours), legend=legend),
            tooltip=[
                alt.Tooltip("name:N", title=name_title),
                alt.Tooltip("count:Q", title=count_title, format=","),
                alt.Tooltip("utcyearmonthdatehoursminutes(start):T", title=f"from ({zone})", format="%-d %b %H:%M"),
                alt.Tooltip("utcyearmonthdatehoursminutes(end):T", title=f"to ({zone})", format="%-d %b %H:%M"),
            ],
        )
        .properties(height=_HEIGHT, padding=_PADDING)
        .configure_view(stroke=None)
    )


def lines(points: pd.DataFrame, *, names: Sequence[str], count_title: str, name_title: str) -> alt.Chart:
    """One line per name, with a dot at the end of each window. Times are UTC.

    points: columns start, end (UTC), name, count. names: the order of the colours, at most LARGEST_SERIES.
    """
    colours = alt.Scale(domain=list(names), range=list(_CATEGORIES[: len(names)]))
    legend = alt.Legend(title=None, orient="top", symbolType="square", symbolSize=60, labelFontSize=12, columns=len(names), offset=6)
    return (
        alt.Chart(points)
        .mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=28) if len(points) <= _MOST_DOTS else False)
        .encode(
            x=alt.X("end:T", scale=alt.Scale(type="utc"), title=None, axis=_time_axis()),
            y=alt.Y("count:Q", title=count_title, axis=_amount_axis(",d")),
            color=alt.Color("name:N", sort=list(names), scale=colours, legend=legend),
            tooltip=[
                alt.Tooltip("name:N", title=name_title),
                alt.Tooltip("count:Q", title=count_title, format=","),
                alt.Tooltip("utcyearmonthdatehoursminutesseconds(start):T", title="from (UTC)", format="%-d %b %H:%M:%S"),
                alt.Tooltip("utcyearmonthdatehoursminutesseconds(end):T", title="to (UTC)", format="%-d %b %H:%M:%S"),
            ],
        )
        .properties(height=_HEIGHT, padding=_PADDING)
        .configure_view(stroke=None)
    )


def gains_and_losses(changes: pd.DataFrame, *, gain: str, loss: str, title: str) -> alt.LayerChart:
    """Bars up for gains and down for losses, each as wide as its window. Times are UTC.

    changes: columns start, end (UTC), gained, lost (both from 0). gain, loss: the labels of the two.
    """
    x = alt.X("start:T", scale=alt.Scale(type="utc"), title=None, axis=_time_axis())
    colours = alt.Scale(domain=[gain, loss], range=[_ACCENT, _CATEGORIES[-1]])
    legend = alt.Legend(title=None, orient="top", symbolType="square", labelFontSize=12, columns=2, offset=6)
    tooltip = [
        alt.Tooltip("gained:Q", title=gain, format=","),
        alt.Tooltip("lost:Q", title=loss, format=","),
        alt.Tooltip("utcyearmonthdatehoursminutes(start):T", title="minute (UTC)", format="%-d %b %H:%M"),
    ]
    named = changes.assign(gain=gain, loss=loss, below=-changes["lost"], zero=0)
    base = alt.Chart(named).mark_rect(stroke="white", strokeWidth=0.75).encode(x=x, x2="end:T", y2="zero:Q", tooltip=tooltip)
    bars = [
        base.encode(y=alt.Y(f"{end}:Q", title=title, axis=_amount_axis("~s")), color=alt.Color(f"{name}:N", scale=colours, legend=legend))
        for end, name in (("gained", "gain"), ("below", "loss"))
    ]
    return alt.layer(*bars).properties(height=_HEIGHT, padding=_PADDING).configure_view(stroke=None)


def hours_of_day(trips: pd.DataFrame, *, count_title: str) -> alt.Chart:
    """One bar per hour of the day. trips: columns hour (0 to 23), trips."""
    axis = alt.Axis(
        labelAngle=0,
        labelColor=_MUTED,
        domainColor=_GRID,
        ticks=False,
        values=list(range(0, 24, 3)),
        labelExpr="format(datum.value, '02d') + ':00'",
    )
    return (
        alt.Chart(trips)
        .mark_bar(color=_ACCENT, cornerRadiusEnd=2)
        .encode(
            x=alt.X("hour:O", title=None, axis=axis),
            y=alt.Y(
                "trips:Q",
                title=count_title,
                axis=alt.Axis(tickCount=5, gridColor=_GRID, labelColor=_MUTED, titleColor=_MUTED, domain=False),
            ),
            tooltip=[alt.Tooltip("hour:O", title="hour of the day"), alt.Tooltip("trips:Q", title=count_title, format=",.1f")],
        )
        .properties(height=_HEIGHT, padding=_PADDING)
        .configure_view(stroke=None)
    )


def query_colours(names: Sequence[str]) -> dict[str, str]:
    """A colour for each name, the same on every chart. Colours repeat after twelve names."""
    return {name: _QUERY_COLOURS[place % len(_QUERY_COLOURS)] for place, name in enumerate(names)}


def query_lines(
    points: pd.DataFrame, value: str, *, colour_of: dict[str, str], title: str, height: int, legend: bool, ages: bool = False
) -> alt.Chart:
    """One line per query. points: columns at (UTC), query, stretch (a line breaks where it changes), and `value`.

    colour_of: by query, in the order of the legend. ages: the values are seconds, from zero to years; the scale covers both.
    """
    y_axis = alt.Axis(gridColor=_GRID, labelColor=_MUTED, domain=False, ticks=False, tickCount=4, format="~s")
    scale = alt.Scale(zero=True)
    if ages:
        y_axis = alt.Axis(
            gridColor=_GRID,
            labelColor=_MUTED,
            domain=False,
            ticks=False,
            values=_AGE_TICKS_SECONDS,
            labelExpr=_AGE_LABEL,
            labelOverlap=True,
        )
        scale = alt.Scale(type="symlog", constant=10)
    shown = [name for name in colour_of if name in set(points["query"])]
    # Four columns of names fit the narrowest supported page.
    key = alt.Legend(title=None, orient="top", symbolType="stroke", symbolStrokeWidth=3, columns=4, labelFontSize=12, labelLimit=240)
    return (
        alt.Chart(points)
        .mark_line(strokeWidth=1.8, interpolate="monotone", clip=True)
        .encode(
            x=alt.X(
                "at:T",
                scale=alt.Scale(type="utc"),
                title=None,
                axis=alt.Axis(format="%H:%M", grid=False, tickCount=5, labelColor=_MUTED, domainColor=_GRID, tickColor=_GRID),
            ),
            y=alt.Y(f"{value}:Q", title=None, scale=scale, axis=y_axis),
            color=alt.Color(
                "query:N",
                sort=shown,
                scale=alt.Scale(domain=shown, range=[colour_of[name] for name in shown]),
                legend=key if legend else None,
            ),
            detail="stretch:N",
            tooltip=[
                alt.Tooltip("query:N", title="query"),
                alt.Tooltip(f"{value}:Q", title=title, format=",.1f"),
                alt.Tooltip("utchoursminutesseconds(at):T", title="at (UTC)", format="%H:%M:%S"),
            ],
        )
        .properties(height=height, padding=_PADDING)
        .configure_view(stroke=None)
    )


def _time_axis() -> alt.Axis:
    return alt.Axis(labelExpr=_UTC_TICK, grid=False, tickCount=8, labelColor=_MUTED, domainColor=_GRID, tickColor=_GRID)


def _amount_axis(number_format: str) -> alt.Axis:
    return alt.Axis(format=number_format, tickMinStep=1, tickCount=5, gridColor=_GRID, labelColor=_MUTED, titleColor=_MUTED, domain=False)
