"""The table beside the roofline: a line a case, numbers in named units, nothing inside the plot itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from kernelviz.metrics.placement import Placed
from kernelviz.metrics.roofs import roof_name
from kernelviz.metrics.sweep import size_words
from kernelviz.plots.variant_styles import variant_words
from kernelviz.text.quality import describe_quality
from kernelviz.ui.bench.table import time_unit


def frame(cases: Sequence[Placed]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The table and how its columns are shown. Unknown numbers are empty, never zero."""
    scale, unit = time_unit([c.time_s for c in cases])
    several_ops = len({c.problem.op for c in cases}) > 1
    several_runs = len({c.run_id for c in cases}) > 1
    time, width = f"time, {unit}", "±, %"
    lines = [
        {
            **({"op": c.problem.op} if several_ops else {}),
            "variant": variant_words(c.variant),
            "sizes": size_words(c.problem),
            "of roof, %": None if c.share is None else c.share * 100,
            "limiter": c.limiter.words,
            "distance": None if not c.share else 1 / c.share,
            time: c.time_s / scale,
            width: None if c.figure.half_width is None else c.figure.half_width * 100,
            "GFLOP/s": c.rate_flop_per_s / 1e9 if c.rate_flop_per_s is not None else None,
            "GB/s": c.bandwidth_bytes_per_s / 1e9 if c.bandwidth_bytes_per_s is not None else None,
            "FLOP/B": c.intensity,
            "roof": "unknown" if c.light is None else roof_name(c.light.roof),
            "because": c.limiter.because,
            "precision": c.problem.precision,
            **({"run": c.run_name, "device": c.device} if several_runs else {}),
            "trust": str(describe_quality(c.quality)),
        }
        for c in cases
    ]
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    shown: dict[str, Any] = {
        "of roof, %": number(format="%.1f", help="Speed of light by the roofs shown, over time."),
        "limiter": text(help="Read from times, kernels and measured roofs: see the rule below."),
        "distance": number(format="%.3g ×", help="The time over the least time that the roof allows."),
        time: number(format="%.2f", help="Median of trimmed block means."),
        width: number(format="%.2f", help="Half the 95 % interval, bootstrapped over blocks."),
        "GFLOP/s": number(format="%.4g", help="Of the problem's flop."),
        "GB/s": number(format="%.1f", help="Of the problem's minimal bytes."),
        "FLOP/B": number(format="%.3g", help="Arithmetic intensity: flop for each minimal byte."),
        "roof": text(help="The roof that sets the least time."),
        "because": text(help="What the limiter rests on.", width="large"),
        "trust": text(help="What stands behind the time: see the page Method.", width="large"),
    }
    return pd.DataFrame(lines), shown
