"""Lines over time, one for each query. Frames in, Altair charts out; names of topics appear as labels only, never as markup."""

from collections.abc import Sequence

import altair as alt
import pandas as pd

_MUTED, _GRID = "#6b7280", "#e8ebef"
_COLOURS = (
    "#0f766e", "#3b82f6", "#f59e0b", "#8b5cf6", "#f43f5e", "#84cc16",
    "#0ea5e9", "#a16207", "#d946ef", "#475569", "#14b8a6", "#ef4444",
)  # fmt: skip
_PADDING = {"left": 0, "top": 4, "right": 6, "bottom": 0}
_AGE_TICKS_SECONDS = (0, 10, 60, 600, 3_600, 36_000, 86_400, 864_000, 8_640_000, 86_400_000, 864_000_000)
_AGE_LABEL = (
    "datum.value >= 86400 ? format(datum.value / 86400, ',d') + ' d' : datum.value >= 3600 ? format(datum.value / 3600, 'd') + ' h' : "
    "datum.value >= 60 ? format(datum.value / 60, 'd') + ' min' : format(datum.value, 'd') + ' s'"
)


def colours(names: Sequence[str]) -> dict[str, str]:
    """A colour for each name, the same on every chart; beyond twelve names they come again."""
    return {name: _COLOURS[place % len(_COLOURS)] for place, name in enumerate(names)}


def lines(
    points: pd.DataFrame, value: str, *, colour_of: dict[str, str], title: str, height: int, legend: bool, ages: bool = False
) -> alt.Chart:
    """A line for each query. points: columns at (UTC), query, stretch (a line ends where it changes), and `value`.

    colour_of: by query, in the order of the legend. ages: the values are seconds from none to years, on a scale that shows both.
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
    # Four columns of names fit the narrowest page that the dashboard is made for.
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
