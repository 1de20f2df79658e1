"""Text for people: every module that turns facts into text, without Streamlit and without I/O.

The functions `format_*` (a short value) and `describe_*` (a sentence) are imported from here. Tables of labels are imported from
their modules.
"""

from kernelviz.text.alerts import describe_alerts
from kernelviz.text.cells import describe_comparison_with_baseline, describe_outcome
from kernelviz.text.charts import (
    describe_bars,
    describe_chart_by_size,
    describe_comparison,
    describe_foreign_times,
    describe_roofline,
    describe_samples,
    describe_selection,
)
from kernelviz.text.comparison import (
    describe_mean,
    describe_noise,
    describe_pair,
    describe_refusals,
    describe_unpaired,
    format_case,
    format_change,
    format_counts,
)
from kernelviz.text.devices import format_cache_size
from kernelviz.text.events import describe_queue_position
from kernelviz.text.failures import describe_failure, describe_reason, format_failure
from kernelviz.text.foreign_times import describe_methods
from kernelviz.text.inspection import (
    describe_block,
    describe_inputs,
    describe_inspection,
    describe_memory,
    describe_octave,
    describe_output,
    format_index,
    format_output_value,
    format_power_of_two,
    format_shape,
    format_share_of_bound,
    format_strides,
)
from kernelviz.text.library_comparison import format_row
from kernelviz.text.limiter import describe_evidence, describe_limiter_reason, describe_missing, format_limiter
from kernelviz.text.notices import describe_notice, format_notice
from kernelviz.text.published_gains import describe_published_gain
from kernelviz.text.quality import (
    describe_methods_of,
    describe_part,
    describe_quality,
    describe_quality_of,
    describe_throttle,
    format_badge,
    format_badge_of,
    format_level,
)
from kernelviz.text.refusals import format_refusals
from kernelviz.text.results import describe_correctness, format_configuration, format_variant
from kernelviz.text.roofs import (
    describe_cached_part,
    describe_ceiling,
    describe_distance,
    describe_refusal,
    format_bytes,
    format_ceiling,
    format_move,
    format_origin,
    format_rates,
    format_roof_name,
    format_roof_value,
    format_share,
)
from kernelviz.text.samples import describe_drift, describe_lag_1, describe_repeats, describe_sm_clock, describe_spread
from kernelviz.text.selftest import describe_check, format_limit, format_outcome
from kernelviz.text.sizes import format_problem, format_size, format_sizes
from kernelviz.text.text import Text
from kernelviz.text.tiles import Tile
from kernelviz.text.times import format_host_bound, format_time
from kernelviz.text.trends import describe_change, describe_trend, format_difference, format_setup
from kernelviz.text.tuning import describe_best, describe_cost, describe_failures, describe_search, format_gain
from kernelviz.text.verdicts import describe_verdict_reason, format_verdict
from kernelviz.text.winners import describe_winners

__all__ = [
    "Text",
    "Tile",
    "describe_alerts",
    "describe_bars",
    "describe_best",
    "describe_block",
    "describe_cached_part",
    "describe_ceiling",
    "describe_change",
    "describe_chart_by_size",
    "describe_check",
    "describe_comparison",
    "describe_comparison_with_baseline",
    "describe_correctness",
    "describe_cost",
    "describe_distance",
    "describe_drift",
    "describe_evidence",
    "describe_failure",
    "describe_failures",
    "describe_foreign_times",
    "describe_inputs",
    "describe_inspection",
    "describe_lag_1",
    "describe_limiter_reason",
    "describe_mean",
    "describe_memory",
    "describe_methods",
    "describe_methods_of",
    "describe_missing",
    "describe_noise",
    "describe_notice",
    "describe_octave",
    "describe_outcome",
    "describe_output",
    "describe_pair",
    "describe_part",
    "describe_published_gain",
    "describe_quality",
    "describe_quality_of",
    "describe_queue_position",
    "describe_reason",
    "describe_refusal",
    "describe_refusals",
    "describe_repeats",
    "describe_roofline",
    "describe_samples",
    "describe_search",
    "describe_selection",
    "describe_sm_clock",
    "describe_spread",
    "describe_throttle",
    "describe_trend",
    "describe_unpaired",
    "describe_verdict_reason",
    "describe_winners",
    "format_badge",
    "format_badge_of",
    "format_bytes",
    "format_cache_size",
    "format_case",
    "format_ceiling",
    "format_change",
    "format_configuration",
    "format_counts",
    "format_difference",
    "format_failure",
    "format_gain",
    "format_host_bound",
    "format_index",
    "format_level",
    "format_limit",
    "format_limiter",
    "format_move",
    "format_notice",
    "format_origin",
    "format_outcome",
    "format_output_value",
    "format_power_of_two",
    "format_problem",
    "format_rates",
    "format_refusals",
    "format_roof_name",
    "format_roof_value",
    "format_row",
    "format_setup",
    "format_shape",
    "format_share",
    "format_share_of_bound",
    "format_size",
    "format_sizes",
    "format_strides",
    "format_time",
    "format_variant",
    "format_verdict",
]
