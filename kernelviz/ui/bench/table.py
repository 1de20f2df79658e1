"""Results as a table that one can sort and search: numbers in named units, verdicts in words, failures with reasons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from kernelviz.core.problem import Clock
from kernelviz.metrics.figures import FIGURES, TIMES, host_bound, loop_over_warm, times_s
from kernelviz.metrics.roofline import Headline
from kernelviz.metrics.summary import Row, by_rate
from kernelviz.metrics.sweep import varying_axes
from kernelviz.plots.variant_styles import variant_words
from kernelviz.text import cells
from kernelviz.text.cells import against_words as against_words
from kernelviz.text.cells import first_call_s as first_call_s
from kernelviz.text.cells import outcome_words as outcome_words
from kernelviz.text.cells import time_unit as time_unit
from kernelviz.text.configuration import CONFIGURATION_HELP, format_configuration
from kernelviz.text.quality import describe_methods_of, describe_notes_on_figures, describe_quality_of


def frame(
    table: Sequence[Row], baseline: str, headline: Headline = "cold", clock: Clock | None = None
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The table and how its columns are shown. Unknown numbers are empty, never zero. `clock`: that of the run's method."""
    scale, unit = time_unit([r.figure.estimate for r in table if r.figure])
    axes = varying_axes([r.result.problem for r in table]) or tuple(table[0].result.problem.sizes)
    computes = by_rate(table)
    against = f"against {variant_words(baseline)}"
    time, width, rate = f"{headline} time, {unit}", "±, %", "TFLOP/s" if computes else "GB/s"
    configured = any(row.result.configuration for row in table)
    lines = [
        {
            "variant": variant_words(row.result.variant),
            **{axis: row.result.problem.sizes[axis] for axis in axes},
            time: row.figure.estimate / scale if row.figure else None,
            width: _percent(row.figure.half_width if row.figure else None),
            rate: _rate(row, computes),
            "of roof, %": _percent(row.efficiency),
            against: str(against_words(row)),
            "result": str(outcome_words(row)),
            "first call, s": first_call_s(row.result.preparation),
            **({"configuration": format_configuration(row.result) or None} if configured else {}),
            "trust": str(describe_quality_of(row.result, headline, clock)),
        }
        for row in table
    ]
    number = st.column_config.NumberColumn
    shown: dict[str, Any] = {
        "variant": st.column_config.TextColumn(pinned=True),
        **{axis: number(format="localized", help="Size of this axis.") for axis in axes},
        time: number(format="%.2f", help=cells.TIME_HELP.format(headline=cells.HEADLINES[headline])),
        width: number(format="%.2f", help=cells.WIDTH_HELP),
        rate: number(format="%.4g" if computes else "%.1f", help=cells.RATE_HELP),
        "of roof, %": st.column_config.ProgressColumn(format="%.1f", min_value=0, max_value=100, help=cells.SHARE_HELP),
        against: st.column_config.TextColumn(help=cells.AGAINST_HELP, width="medium"),
        "result": st.column_config.TextColumn(help=cells.RESULT_HELP),
        "first call, s": number(format="%.3f", help=cells.FIRST_CALL_HELP),
        "configuration": st.column_config.TextColumn(help=CONFIGURATION_HELP, width="medium"),
        "trust": st.column_config.TextColumn(help=cells.TRUST_HELP, width="large"),
    }
    if not configured:
        del shown["configuration"]
    return pd.DataFrame(lines), shown


def _rate(row: Row, computes: bool) -> float | None:
    rate = row.rate_flop_per_s if computes else row.bandwidth_bytes_per_s
    return None if rate is None else rate / (1e12 if computes else 1e9)


def _percent(fraction: float | None) -> float | None:
    return None if fraction is None else fraction * 100


def figures_frame(table: Sequence[Row]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Every figure of every case, all in one unit so that columns can be compared; unknown ones are empty."""
    found = [times_s(row.result) for row in table]
    scale, unit = time_unit([t for times in found for t in times.values() if t is not None])
    axes = varying_axes([r.result.problem for r in table]) or tuple(table[0].result.problem.sizes)
    names = {key: f"{_SHORT.get(key, name)}, {unit}" for key, name in TIMES.items()}
    lines = [
        {
            "variant": variant_words(row.result.variant),
            **{axis: row.result.problem.sizes[axis] for axis in axes},
            **{names[key]: None if time_s is None else time_s / scale for key, time_s in times.items()},
            "host-bound": _host_bound_words(row),
            "energy, mJ a call": _energy_mj(row),
            "how": str(describe_methods_of(row.result)),
            "noticed": str(describe_notes_on_figures(row.result)),
        }
        for row, times in zip(table, found, strict=True)
    ]
    made = pd.DataFrame(lines)
    if made["energy, mJ a call"].isna().all():
        made = made.drop(columns="energy, mJ a call")
    number = st.column_config.NumberColumn
    questions = {f.name: f.question for f in FIGURES}
    shown: dict[str, Any] = {
        "variant": st.column_config.TextColumn(pinned=True),
        **{axis: number(format="localized", help="Size of this axis.") for axis in axes},
        **{names[k]: number(format="%.2f", help=questions.get(name, _QUANTILES)) for k, name in TIMES.items()},
        "host-bound": st.column_config.TextColumn(help=_HOST_BOUND),
        "energy, mJ a call": number(format="%.3g", help="By the driver's counter, over calls back to back."),
        "how": st.column_config.TextColumn(
            help="Of the device times: where the stamps come from, how the call was launched, what was taken off."
        ),
        "noticed": st.column_config.TextColumn(help="What was noticed about a figure beside the cold time."),
    }
    return made, shown


_SHORT = {
    "cold_s": "cold",
    "warm_s": "warm",
    "call_eager_s": "eager p50",
    "call_eager_p90_s": "eager p90",
    "call_eager_p99_s": "eager p99",
    "call_graph_s": "graph",
}
"""What stands above the columns, so that all of them are seen at once."""
_QUANTILES = (
    "One Python call from idle to done, by the host clock: half, 90 % and 99 % of the calls take at most so long."
)
_HOST_BOUND = "Loop over warm. Host-bound: over 1.1, so that calls back to back wait for Python, not for the device."


def _host_bound_words(row: Row) -> str | None:
    ratio = loop_over_warm(row.result.timing)
    return None if ratio is None else f"{'host-bound' if host_bound(row.result.timing) else 'no'}, {ratio:.1f}×"


def _energy_mj(row: Row) -> float | None:
    energy = row.result.timing.energy if row.result.timing else None
    return None if energy is None else energy.joules * 1e3


def kernels_frame(table: Sequence[Row]) -> pd.DataFrame:
    """A line for each kernel that a call of each case launches, with the span of the call and how much of it was busy."""
    return pd.DataFrame(
        [
            {
                "variant": variant_words(row.result.variant),
                "sizes": " ".join(f"{a}={s}" for a, s in row.result.problem.sizes.items()),
                "span of the call, µs": _microseconds(times["cold_s"]),
                "busy, µs": _microseconds(times["busy_s"]),
                "kernel": kernel.name,
                "traced duration, µs": _microseconds(kernel.duration_s),
                "grid": _dimensions(kernel.grid),
                "block": _dimensions(kernel.block),
                "registers a thread": kernel.registers_per_thread,
                "shared memory, B": kernel.shared_memory_bytes,
                "local memory, B a thread": kernel.local_memory_bytes,
            }
            for row in table
            if row.result.kernels
            for times in (times_s(row.result),)
            for kernel in row.result.kernels
        ]
    )


KERNEL_COLUMNS: dict[str, Any] = {
    "registers a thread": st.column_config.NumberColumn(help=cells.REGISTERS_HELP),
    "shared memory, B": st.column_config.NumberColumn(help=cells.SHARED_HELP),
    "local memory, B a thread": st.column_config.NumberColumn(help=cells.LOCAL_HELP),
    "span of the call, µs": st.column_config.NumberColumn(
        format="%.2f", help="From the first start to the last end of the call's kernels: device cold."
    ),
    "busy, µs": st.column_config.NumberColumn(format="%.2f", help="The part of the span in which a kernel ran."),
    "traced duration, µs": st.column_config.NumberColumn(
        format="%.2f",
        help="Of this kernel by the tracer, the median over the samples; what tracing adds is taken off the span only.",
    ),
}
"""How columns of the kernels are shown."""


def _microseconds(time_s: float | None) -> float | None:
    return None if time_s is None else time_s * 1e6


def _dimensions(of: tuple[int, int, int] | None) -> str:
    return "unknown" if of is None else " × ".join(str(n) for n in of)
