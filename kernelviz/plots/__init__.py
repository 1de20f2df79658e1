"""Charts: one pure function each, named ``<y>_by_<x>``, from results to a figure. No Streamlit, no torch, no I/O.

A variant has the same colour and marker in every chart. Failures are drawn at the size at which they happened. A chart without
data is an empty frame with a sentence that says what is missing.
"""

from kernelviz.plots.bars import time_by_variant
from kernelviz.plots.by_size import bandwidth_by_size, latency_by_size, rate_by_size, speed_up_by_size
from kernelviz.plots.comparison import ratio_by_case, shares_by_time
from kernelviz.plots.configurations import (
    best_time_by_progress,
    count_by_reason,
    share_by_parameter,
    time_by_parameter,
    time_by_registers,
)
from kernelviz.plots.foreign_times import other_times_by_size
from kernelviz.plots.fusion import fusion_speed_up_by_size
from kernelviz.plots.inspection import elements_by_error, elements_by_value, share_by_element
from kernelviz.plots.ladder import value_by_step
from kernelviz.plots.parallel_coordinates import time_by_all_parameters
from kernelviz.plots.roofline import rate_by_intensity
from kernelviz.plots.roofline_of_runs import rates_by_intensity
from kernelviz.plots.samples import samples_by_order, share_by_time
from kernelviz.plots.timeline import marks_by_time
from kernelviz.plots.transfer import ratio_by_shape
from kernelviz.plots.trend import time_by_run
from kernelviz.plots.variant_styles import Style, style_of, styles_of
from kernelviz.plots.winner_map import winner_by_size

__all__ = [
    "Style",
    "bandwidth_by_size",
    "best_time_by_progress",
    "count_by_reason",
    "elements_by_error",
    "elements_by_value",
    "fusion_speed_up_by_size",
    "latency_by_size",
    "marks_by_time",
    "other_times_by_size",
    "rate_by_intensity",
    "rate_by_size",
    "rates_by_intensity",
    "ratio_by_case",
    "ratio_by_shape",
    "samples_by_order",
    "share_by_element",
    "share_by_parameter",
    "share_by_time",
    "shares_by_time",
    "speed_up_by_size",
    "style_of",
    "styles_of",
    "time_by_all_parameters",
    "time_by_parameter",
    "time_by_registers",
    "time_by_run",
    "time_by_variant",
    "value_by_step",
    "winner_by_size",
]
