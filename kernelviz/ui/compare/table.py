"""The table of a comparison: a line a pair, worst first, numbers in named units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from kernelviz.metrics.comparison import Comparison, Pair
from kernelviz.metrics.summary import figure_of
from kernelviz.metrics.sweep import varying_axes
from kernelviz.plots.variant_styles import variant_words
from kernelviz.text.cells import WIDTH_HELP, time_unit
from kernelviz.text.comparison import sign_of
from kernelviz.text.quality import describe_quality_of
from kernelviz.text.verdicts import describe_pair_reason


def frame(found: Comparison) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The table and how its columns are shown. Unknown numbers are empty, never zero."""
    pairs, headline = found.pairs, found.headline
    times = [figure_of(r.timing, headline) for p in pairs for r in (p.before, p.after)]
    scale, unit = time_unit([f.estimate for f in times if f is not None])
    axes = varying_axes([p.problem for p in pairs]) or tuple(pairs[0].problem.sizes)
    lines = [
        {
            "verdict": f"{sign_of(p)} {p.word}",
            **_names(p, found),
            **{axis: p.problem.sizes.get(axis) for axis in axes},
            "change, %": None if p.ratio is None else (p.ratio.estimate - 1) * 100,
            "from, %": None if p.ratio is None or p.ratio.low is None else (p.ratio.low - 1) * 100,
            "to, %": None if p.ratio is None or p.ratio.high is None else (p.ratio.high - 1) * 100,
            "floor, ±%": None if p.floor is None else p.floor * 100,
            **_times(p, found, scale, unit),
            "because": str(describe_pair_reason(p.reason)),
            "trust of A": str(describe_quality_of(p.before, headline, found.a.method.clock)),
            "trust of B": str(describe_quality_of(p.after, headline, found.b.method.clock)),
        }
        for p in pairs
    ]
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    shown: dict[str, Any] = {
        "verdict": text(pinned=True, help="What each means stands below."),
        **{axis: number(format="localized", help="Size of this axis.") for axis in axes},
        "change, %": number(format="%+.2f", help="Time of B over time of A, less one: above 0, B is slower."),
        "from, %": number(format="%+.2f", help="Lower end of the 95 % interval of the change."),
        "to, %": number(format="%+.2f", help="Upper end of the 95 % interval of the change."),
        "floor, ±%": number(format="%.2f", help="The noise that the whole interval has to clear."),
        **{
            f"{side}, {unit}": number(format="%.2f", help=f"{headline} time: median of trimmed block means.")
            for side in "AB"
        },
        **{f"± of {side}, %": number(format="%.2f", help=WIDTH_HELP) for side in "AB"},
        "because": text(help="What the verdict rests on, or why there is none.", width="medium"),
        **{
            f"trust of {s}": text(help="What stands behind the time: see the page Method.", width="large") for s in "AB"
        },
    }
    return pd.DataFrame(lines), shown


def _names(pair: Pair, found: Comparison) -> dict[str, str]:
    """The variant, or both where one of each side was chosen."""
    if not found.by_problem:
        return {"variant": variant_words(pair.before.variant)}
    return {"variant A": variant_words(pair.before.variant), "variant B": variant_words(pair.after.variant)}


def _times(pair: Pair, found: Comparison, scale: float, unit: str) -> dict[str, float | None]:
    figures = {side: figure_of(r.timing, found.headline) for side, r in (("A", pair.before), ("B", pair.after))}
    return {
        **{f"{side}, {unit}": f.estimate / scale if f else None for side, f in figures.items()},
        **{f"± of {side}, %": _percent(f.half_width if f else None) for side, f in figures.items()},
    }


def _percent(fraction: float | None) -> float | None:
    return None if fraction is None else fraction * 100


def chosen_key(rows: Sequence[int], found: Comparison) -> str | None:
    """The pair whose row is chosen."""
    return found.pairs[rows[0]].key if rows and rows[0] < len(found.pairs) else None
