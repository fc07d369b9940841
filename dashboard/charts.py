"""The charts that pages share. They turn frames into Vega-Lite, by Altair. Texts from topics appear only as labels, never as markup.

The frame stays beside the chart, so that a newer frame of the same chart replaces its rows only. Colours come from theme.toml, light and dark, and not from here. Times are shown in UTC, unconverted.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

OTHERS = "others"
MAX_SERIES = 5
"""The number of series shown by name: the theme has so many colours that are easy to tell apart, and one for OTHERS."""
_HEIGHT, _TALL_HEIGHT, _SMALL_HEIGHT, _LEGEND_HEIGHT, _THUMBNAIL_HEIGHT = 270, 390, 120, 30, 170
_MAX_DOTS, _FEW_DOTS = 300, 20
_PADDING = {"left": 0, "top": 4, "right": 6, "bottom": 0}
_MOMENT, _SECOND = "%-d %b %H:%M", "%-d %b %H:%M:%S"
# Midnight shows the day instead of 00:00, and the first day of a year the year, so that charts of any length are readable. A chart of some minutes
# has ticks between the minutes, which would repeat a label.
_UTC_TICK = (
    "utcseconds(datum.value) ? '' : "
    "utcFormat(datum.value, utchours(datum.value) || utcminutes(datum.value) ? '%H:%M' : utcdayofyear(datum.value) > 1 ? '%-d %b' : '%Y')"
)
_AGE_TICKS_SECONDS = (0, 10, 60, 600, 3_600, 36_000, 86_400, 864_000, 8_640_000, 86_400_000, 864_000_000)
_AGE_LABEL = (
    "datum.value >= 86400 ? format(datum.value / 86400, ',d') + ' d' : datum.value >= 3600 ? format(datum.value / 3600, 'd') + ' h' : "
    "datum.value >= 60 ? format(datum.value / 60, 'd') + ' min' : format(datum.value, 'd') + ' s'"
)
_ROWS = alt.NamedData("rows")
PICKED = "picked"
"""The selection of the mark that was clicked."""
Chart = alt.Chart | alt.LayerChart | alt.FacetChart
Spec = dict[str, Any]
"""A chart in Vega-Lite's JSON, for `st.vega_lite_chart`. `datasets` holds its frame."""


def ranked_bars(ranking: pd.DataFrame, *, name_title: str, count_title: str) -> Spec:
    """Horizontal bars with their numbers, in the order of `ranking`. A pale bar behind each shows the previous count.

    ranking: columns name, count, before (the count of the previous window).
    """
    labelled = ranking.assign(
        label=[f"{name} \N{MIDDLE DOT} {count:,}" for name, count in zip(ranking["name"], ranking["count"], strict=True)]
    )
    names = alt.Y(
        "label:N", sort=list(labelled["label"]), title=None, axis=alt.Axis(labelFontSize=13, labelLimit=260, ticks=False, domain=False)
    )
    tooltip = [
        alt.Tooltip("name:N", title=name_title),
        alt.Tooltip("count:Q", title=count_title, format=","),
        alt.Tooltip("before:Q", title="window before", format=","),
    ]
    base = alt.Chart(_ROWS).encode(y=names, tooltip=tooltip)
    before = base.mark_bar(opacity=0.25, cornerRadiusEnd=3, height={"band": 0.84}).encode(x=alt.X("before:Q", title=None, axis=None))
    bars = base.mark_bar(cornerRadiusEnd=3, height={"band": 0.5}, cursor="pointer").encode(x=alt.X("count:Q", title=None, axis=None))
    return _finished(alt.layer(before, bars.add_params(picking("name"))), labelled, height=_HEIGHT // 10 * max(len(ranking), 1))


def stacked_windows(series: pd.DataFrame, *, names: Sequence[str], count_title: str, name_title: str, zone: str = "UTC") -> Spec:
    """Stacked bars over time, each as wide as its window. Times are labelled `zone`.

    series: columns start, end (UTC), name, count. names: the order of the series from the bottom: at most MAX_SERIES, then OTHERS.
    """
    ranked = series.assign(rank=series["name"].map({name: rank for rank, name in enumerate(names)})).sort_values("rank")
    # Vega-Lite does not stack bars with both a start and an end on the x axis, so their positions are computed here.
    top = ranked.groupby("start")["count"].cumsum()
    chart = (
        alt.Chart(_ROWS)
        .mark_rect(cursor="pointer")
        .encode(
            x=_time("start"),
            x2="end:T",
            y=_amount("bottom", count_title),
            y2="top:Q",
            color=_colour(names),
            description="read:N",
            tooltip=[*_counted(name_title, count_title), *_window(zone, _MOMENT)],
        )
        .add_params(picking("start", "end"))
    )
    # Without this, a screen reader would be given `bottom` for the count.
    read = [
        f"{name}, {start:%-d %b %H:%M}: {count:,} {count_title}"
        for name, start, count in zip(ranked["name"], ranked["start"], ranked["count"], strict=True)
    ]
    return _finished(chart, ranked.assign(bottom=top - ranked["count"], top=top, read=read))


def lines(points: pd.DataFrame, *, names: Sequence[str], count_title: str, name_title: str) -> Spec:
    """One line per name, with a dot at the end of each window.

    points: columns start, end (UTC), name, count. names: the order of the colours, at most MAX_SERIES.
    """
    chart = (
        alt.Chart(_ROWS)
        .mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=28) if len(points) <= _MAX_DOTS else False)
        .encode(
            x=_time("end"),
            y=_amount("count", count_title),
            color=_colour(names, symbol="stroke"),
            strokeDash=alt.StrokeDash("name:N", sort=list(names), legend=None),
            tooltip=[*_counted(name_title, count_title), *_window("UTC", _SECOND)],
        )
    )
    return _finished(chart, points)


def gains_and_losses(changes: pd.DataFrame, *, gain: str, loss: str, title: str) -> Spec:
    """Bars up for gains and down for losses, each as wide as its window.

    changes: columns start, end (UTC), gained, lost (both from 0). gain, loss: the labels of the two.
    """
    tooltip = [
        alt.Tooltip("gained:Q", title=gain, format=","),
        alt.Tooltip("lost:Q", title=loss, format=","),
        alt.Tooltip("utcyearmonthdatehoursminutes(start):T", title="minute (UTC)", format=_MOMENT),
    ]
    named = changes.assign(gain=gain, loss=loss, below=-changes["lost"], zero=0)
    base = alt.Chart(_ROWS).mark_rect(cursor="pointer").encode(x=_time("start"), x2="end:T", y2="zero:Q", tooltip=tooltip)
    bars = [
        base.encode(y=_amount(end, title, "~s"), color=_colour([gain, loss], field))
        for end, field in (("gained", "gain"), ("below", "loss"))
    ]
    return _finished(alt.layer(*bars).add_params(picking("start", "end")), named)


def hours_of_day(trips: pd.DataFrame) -> Spec:
    """One bar per hour of the day. trips: columns hour (0 to 23), trips."""
    axis = alt.Axis(labelAngle=0, ticks=False, values=list(range(0, 24, 3)), labelExpr="format(datum.value, '02d') + ':00'")
    chart = (
        alt.Chart(_ROWS)
        .mark_bar(cornerRadiusEnd=2)
        .encode(
            x=alt.X("hour:O", title=None, axis=axis),
            y=_amount("trips", "trips"),
            tooltip=[alt.Tooltip("hour:O", title="hour of the day"), alt.Tooltip("trips:Q", format=",.1f")],
        )
    )
    return _finished(chart, trips, height=_TALL_HEIGHT)


def course(points: pd.DataFrame, values: Mapping[str, str], *, title: str, ages: bool) -> Spec:
    """A small chart of measures of one query: straight lines between what was measured, and a dashed one at each start of the query.

    points: columns at (UTC), is_start, stretch (lines break where it changes), and the keys of `values`, whose values are the names of the
    lines. ages: the measures are seconds, from zero to years; the scale covers both.
    """
    long = points.melt(["at", "is_start", "stretch"], list(values), "name", "value").dropna(subset="value")
    axis = alt.Axis(domain=False, ticks=False, tickCount=3, format="~s")
    scale = alt.Scale(zero=True) if long["value"].any() else alt.Scale(domain=[0, 1])  # Vega has no ticks between 0 and 0
    if ages:
        axis = alt.Axis(domain=False, ticks=False, values=_AGE_TICKS_SECONDS, labelExpr=_AGE_LABEL, labelOverlap=True)
        scale = alt.Scale(type="symlog", constant=10)
    names = list(values.values())
    moment = alt.Tooltip("utchoursminutesseconds(at):T", title="at (UTC)", format="%H:%M:%S")
    line = (
        alt.Chart(_ROWS)
        .transform_filter("isValid(datum.value)")
        .mark_line(strokeWidth=1.8, point=alt.OverlayMarkDef(size=14) if len(points) <= _FEW_DOTS else False)
        .encode(
            x=_time("at", 3),
            y=alt.Y("value:Q", title=None, scale=scale, axis=axis),
            detail="stretch:N",
            tooltip=[alt.Tooltip("name:N"), alt.Tooltip("value:Q", title=title, format=",.1f"), moment],
        )
    )
    if len(names) > 1:
        line = line.encode(
            color=_colour(names, symbol="stroke", columns=len(names)), strokeDash=alt.StrokeDash("name:N", sort=names, legend=None)
        )
    start = alt.Chart(_ROWS).transform_filter("datum.is_start").mark_rule(strokeDash=[4, 4], opacity=0.6)
    rows = pd.concat([long.assign(name=long["name"].map(values), is_start=False), points.loc[points["is_start"], ["at", "is_start"]]])
    height = _SMALL_HEIGHT + (_LEGEND_HEIGHT if len(names) > 1 else 0)
    return _finished(alt.layer(start.encode(x="at:T", tooltip=[moment]), line), rows, height=height)


def thumbnail(spec: Spec) -> Spec:
    """The chart as a small picture without a legend."""
    small = {name: [_without_legend(layer) for layer in part] if name == "layer" else part for name, part in spec.items()}
    return _without_legend(small) | {"height": _THUMBNAIL_HEIGHT}


def _without_legend(part: Spec) -> Spec:
    encoding = part.get("encoding", {})
    return part | {"encoding": encoding | {"color": encoding["color"] | {"legend": None}}} if "color" in encoding else part


def picking(*fields: str) -> alt.Parameter:
    """What a click selects: these fields of the mark."""
    return alt.selection_point(PICKED, fields=list(fields))


def _finished(chart: Chart, rows: pd.DataFrame, height: int = _HEIGHT) -> Spec:
    # Without a check of the whole: Altair has checked each part.
    spec: Spec = chart.properties(height=height, padding=_PADDING).configure_view(stroke=None).to_dict(validate=False)
    return spec | {"datasets": {_ROWS.name: rows}}


def _time(field: str, ticks: int = 8) -> alt.X:
    axis = alt.Axis(labelExpr=_UTC_TICK, grid=False, tickCount=ticks, labelOverlap=True)
    return alt.X(f"{field}:T", scale=alt.Scale(type="utc"), title=None, axis=axis)


def _amount(field: str, title: str, number_format: str = ",d") -> alt.Y:
    return alt.Y(f"{field}:Q", title=title, axis=alt.Axis(format=number_format, tickMinStep=1, tickCount=5, domain=False))


def _colour(names: Sequence[str], field: str = "name", symbol: str = "square", columns: int = 3) -> alt.Color:
    # OTHERS has the theme's last colour. Names that nothing is called by fill the places between; the legend leaves them out.
    unused = ["\N{ZERO WIDTH SPACE}" * (place + 1) for place in range(MAX_SERIES)]
    named = [name for name in names if name != OTHERS]
    domain = [*named, *unused[len(named) :], OTHERS]
    legend = alt.Legend(
        title=None,
        titleFontSize=0,  # with titlePadding, so that Streamlit's theme leaves no room for a title
        titlePadding=0,
        orient="top",
        symbolType=symbol,
        labelFontSize=12,
        columns=columns,
        values=list(names),
        offset=6,
    )
    return alt.Color(f"{field}:N", sort=domain, scale=alt.Scale(domain=domain), legend=legend)


def _counted(name_title: str, count_title: str) -> list[alt.Tooltip]:
    return [alt.Tooltip("name:N", title=name_title), alt.Tooltip("count:Q", title=count_title, format=",")]


def _window(zone: str, moment_format: str) -> list[alt.Tooltip]:
    return [
        alt.Tooltip(f"utcyearmonthdatehoursminutesseconds({end}):T", title=f"{word} ({zone})", format=moment_format)
        for end, word in (("start", "from"), ("end", "to"))
    ]
