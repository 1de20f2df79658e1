"""The columns of a run's cases: one line a column, for the page, the terminal, Markdown, the offline page and data frames.

Names and order of the columns with a name are those of data frames, CSV and Parquet, and stay as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from kernelviz.core import Figure, NaiveTiming, Result, Run, units
from kernelviz.core.configuration import configuration_text
from kernelviz.metrics.figures import (
    Extent,
    Headline,
    back_to_back_over_warm,
    extent,
    first_call_s,
    host_bound,
    times_s,
)
from kernelviz.metrics.naive import ratio_to_cold
from kernelviz.metrics.quality import LEVELS, Quality, quality
from kernelviz.metrics.rows import Row, by_rate
from kernelviz.metrics.stability import stability
from kernelviz.tables.column import ISSUE_HELP, MEMORY_HELP, VARIANT, VARIANT_TEXT, Column, View, select_with_sizes
from kernelviz.text import (
    Text,
    describe_comparison_with_baseline,
    describe_correctness,
    describe_failure,
    describe_methods_of,
    describe_outcome,
    describe_quality,
    format_badge,
    format_configuration,
    format_level,
    format_time,
    format_variant,
    format_verdict,
)
from kernelviz.text.absences import describe_figures_notes
from kernelviz.text.failures import format_stage
from kernelviz.text.quality import INTERVAL_HELP
from kernelviz.text.results import CONFIGURATION_HELP
from kernelviz.text.samples import EXTENT_HELP
from kernelviz.text.times import FIGURES


@dataclass(frozen=True)
class Case:
    """A row of the table: a case of a run, with its cold or warm time."""

    run: Run
    row: Row
    headline: Headline = "cold"

    @property
    def result(self) -> Result:
        return self.row.result

    @property
    def figure(self) -> Figure | None:
        return self.row.figure

    @cached_property
    def extent(self) -> Extent | None:
        """The least, the mean and the largest sample of the time."""
        return extent(self.figure)

    @property
    def stable(self) -> Figure | None:
        """The time, if it has one level."""
        return self.figure if self.figure is not None and not stability(self.figure).unstable else None

    @property
    def timed(self) -> Figure | None:
        """The time, also of a wrong result."""
        return self.row.figure or self.row.wrong_figure

    @cached_property
    def quality(self) -> Quality | None:
        return quality(self.result, self.headline, self.run.method.clock)

    @cached_property
    def times_s(self) -> dict[str, float | None]:
        return times_s(self.result)

    @property
    def naive(self) -> NaiveTiming | None:
        timing = self.result.timing
        return None if timing is None else timing.naive_timing

    @property
    def energy_joules(self) -> float | None:
        timing = self.result.timing
        return timing.energy.joules if timing and timing.energy else None

    @property
    def stage(self) -> str:
        """What failed, marked as a failure."""
        return f"✕ {format_stage(self.row.failure)}" if self.row.failure else ""


def cases(run: Run, rows: Sequence[Row], headline: Headline = "cold") -> list[Case]:
    """The rows of the table."""
    return [Case(run, row, headline) for row in rows]


def _host_bound(case: Case) -> str | None:
    ratio = back_to_back_over_warm(case.result.timing)
    return None if ratio is None else f"{'yes' if host_bound(case.result.timing) else 'no'}, {ratio:.1f}×"


def _against(case: Case) -> str | Text:
    """The verdict for a narrow table, in which a failure without a time is in the column of the time."""
    if case.row.failure is not None:
        return case.stage if case.row.wrong_figure else ""
    return "baseline" if case.row.is_baseline else format_verdict(case.row.verdict) if case.row.verdict else ""


def _markdown_time(case: Case) -> str | Text:
    """The time; both levels of a time that is not stable."""
    assert case.timed is not None  # by the caller
    return format_time(case.timed) if stability(case.timed).unstable else units.seconds(case.timed.estimate)


def _half_width(case: Case) -> float | None:
    return case.row.half_width


def _interval(figure: Figure | None) -> str | None:
    if figure is None or figure.low is None or figure.high is None:
        return None
    return f"{units.seconds(figure.low)} – {units.seconds(figure.high)}"


def _time(name: str, title: str, about: str = "") -> Column[Case]:
    """The column of a time of `times_s`."""
    question = next((f.question for f in FIGURES if f.name.capitalize() == title), about)
    view = View.TIMES | (View(0) if name == "cold_s" else View.RECORD)
    return Column(name, title, question, units.SECONDS, lambda case: case.times_s[name], view, optional=True)


_TIME_HELP = "Median of trimmed block means, {caches}."
_CACHES: dict[Headline, str] = {
    "cold": "caches flushed before each call",
    "warm": "data left where a call leaves them",
}
_QUANTILE_HELP = "One Python call from idle to done, by the host clock: {} % of the calls take at most this long."
_VERDICT_HELP = "From the rounds that measured both variants. A difference has to be larger than the noise floor."
_RESULT_HELP = (
    "The check against the float64 reference, or why there is no time. Any error up to 100 % of the tolerance is right."
)
_ENERGY_HELP = (
    "From the driver's energy counter, during back-to-back calls. Their clock is not that of the time, so joules divided "
    "by the time are not the power."
)
_NAIVE_HELP = (
    "By the naive protocol: in a new process, without warm-up, one pair of CUDA events (on a CPU: the host clock) "
    "around {}."
)
_NAIVE_RATIO_HELP = "The time by the naive protocol divided by the cold device time."
_QUALITY_HELP = (
    "How far the time can be relied on, with the worst reason. All parts are shown for each variant at one size."
)
_RECORD, _WIDE, _NARROW = View.RECORD, View.WIDE, View.TERMINAL | View.MARKDOWN
_MEMORY_OF_CALL: Column[Case] = Column(
    "", "Memory of a call", MEMORY_HELP.format("a call"), units.MEMORY,
    lambda c: c.result.peak_memory.call_bytes if c.result.peak_memory else None, _WIDE, optional=True,
)  # fmt: skip

COLUMNS: tuple[Column[Case], ...] = (
    Column("run", "Run", "Id of the run.", units.TEXT, lambda c: c.run.id, _RECORD),
    Column("device", "Device", "Name of the device.", units.TEXT, lambda c: c.run.environment.device.name, _RECORD),
    Column("op", "Op", "What is computed.", units.TEXT, lambda c: c.result.problem.op, _RECORD),
    # In a record, the sizes are here.
    Column("dtype", "Number format", "Number format of the inputs.", units.TEXT, lambda c: c.result.problem.dtype, _RECORD),
    Column("compute", "Compute", "Arithmetic of fp32 matrix products.", units.TEXT, lambda c: c.result.problem.compute, _RECORD),
    Column("direction", "Direction", "Forward or backward.", units.TEXT, lambda c: c.result.problem.direction, _RECORD),
    Column("data", "Data", "Kind of input data.", units.TEXT, lambda c: c.result.problem.data, _RECORD),
    VARIANT,
    VARIANT_TEXT,
    Column("backend", "Backend", "What the variant is written in.", units.TEXT, lambda c: c.result.backend, _RECORD),
    Column("is_baseline", "Baseline", "Whether others are compared with it.", units.OWN_TEXT, lambda c: c.row.is_baseline,
           _RECORD),
    Column("", "Time", _TIME_HELP, units.OWN_NUMBER, lambda c: format_time(c.timed) if c.timed else c.stage or None,
           View.TERMINAL),
    Column("", "Time", _TIME_HELP, units.OWN_NUMBER, lambda c: _markdown_time(c) if c.timed else c.stage or None,
           View.MARKDOWN),
    Column("time_s", "{headline} time", _TIME_HELP, units.SECONDS, lambda c: c.figure.estimate if c.figure else None, _RECORD),
    # A time with two levels is no number: the quality says both.
    Column("", "{headline} time", _TIME_HELP, units.SECONDS, lambda c: c.stable.estimate if c.stable else None, _WIDE),
    Column("", "±", INTERVAL_HELP, units.WIDTH, lambda c: c.stable.half_width if c.stable else None, _WIDE),
    Column("", "95 % interval", "Another process would measure a time inside it in 95 of 100 cases.", units.OWN_NUMBER,
           lambda c: _interval(c.timed), View.MARKDOWN),
    Column("time_low_s", "From", "Lower end of the 95 % interval.", units.SECONDS, lambda c: c.figure.low if c.figure else None,
           _RECORD),
    Column("time_high_s", "To", "Upper end of the 95 % interval.", units.SECONDS, lambda c: c.figure.high if c.figure else None,
           _RECORD),
    Column("samples", "Samples", "Number of samples of the time.", units.COUNT,
           lambda c: c.figure.sample_count if c.figure else None, _RECORD),
    Column("minimum_s", "Min", f"The shortest sample of the time. {EXTENT_HELP}", units.SECONDS,
           lambda c: c.extent.minimum_s if c.extent else None, _RECORD),
    Column("mean_s", "Mean", f"The mean of all samples of the time. {EXTENT_HELP}", units.SECONDS,
           lambda c: c.extent.mean_s if c.extent else None, _RECORD),
    Column("maximum_s", "Max", f"The longest sample of the time. {EXTENT_HELP}", units.SECONDS,
           lambda c: c.extent.maximum_s if c.extent else None, _RECORD),
    Column("bandwidth_bytes_per_s", "Bandwidth", "Fewest bytes that the problem has to move, divided by the time.",
           units.BYTES_PER_S, lambda c: c.row.bandwidth_bytes_per_s, half_width=_half_width),
    Column("rate_flop_per_s", "Rate", "Floating-point operations of the problem, divided by the time.", units.FLOP_PER_S,
           lambda c: c.row.rate_flop_per_s, half_width=_half_width),
    Column("efficiency_fraction", "Share of roof", "Shortest time that the measured roofs allow, divided by the time.",
           units.SHARE, lambda c: c.row.efficiency),
    Column("speed_up", "Speed-up", "Time of the baseline divided by this time.", units.FACTOR, lambda c: c.row.speed_up, _RECORD),
    Column("verdict", "Verdict", _VERDICT_HELP, units.OWN_TEXT, lambda c: c.row.verdict.kind if c.row.verdict else None,
           _RECORD),
    Column("", "Versus", _VERDICT_HELP, units.OWN_TEXT, lambda c: describe_comparison_with_baseline(c.row), _WIDE, "{baseline}",
           order=lambda c: c.row.speed_up, width="medium"),
    Column("", "Versus", _VERDICT_HELP, units.OWN_TEXT, _against, _NARROW, "{baseline}"),
    Column("correct", "Passed", _RESULT_HELP, units.OWN_TEXT,
           lambda c: None if c.result.accuracy is None else c.result.accuracy.passed, _RECORD),
    Column("", "Correct", _RESULT_HELP, units.TEXT,
           lambda c: describe_correctness(c.result) if c.row.failure is None or c.timed else None, _NARROW),
    Column("error_of_bound_fraction", "Max error / tolerance", "Largest error as a share of the tolerance.", units.SHARE,
           lambda c: None if c.result.accuracy is None else c.result.accuracy.worst_of_bound, _RECORD),
    Column("failure", "Failure", "The stage that failed.", units.OWN_TEXT,
           lambda c: c.row.failure.stage if c.row.failure else None, _RECORD),
    Column("", "Result", _RESULT_HELP, units.TEXT, lambda c: describe_outcome(c.row), _WIDE),
    Column("failure_message", "Message", "Why it failed.", units.TEXT,
           lambda c: describe_failure(c.row.failure) if c.row.failure else None, _RECORD),
    Column("wrong_time_s", "Time of a wrong result", "It is not compared with other times.", units.SECONDS,
           lambda c: c.row.wrong_figure.estimate if c.row.wrong_figure else None, _RECORD),
    Column("work_flop", "Work", "Flop of the problem.", units.COUNT,
           lambda c: c.result.cost.work_flop if c.result.cost else None, _RECORD),
    Column("read_bytes", "Read", "Fewest bytes that have to be read.", units.BYTES,
           lambda c: c.result.cost.read_bytes if c.result.cost else None, _RECORD),
    Column("written_bytes", "Written", "Fewest bytes that have to be written.", units.BYTES,
           lambda c: c.result.cost.written_bytes if c.result.cost else None, _RECORD),
    Column("bind_s", "Bind", "Allocation and compilation.", units.WALL_SECONDS,
           lambda c: c.result.preparation.bind_s if c.result.preparation else None, _RECORD),
    Column("first_call_s", "First call alone", "No sample contains it.", units.WALL_SECONDS,
           lambda c: c.result.preparation.first_call_s if c.result.preparation else None, _RECORD),
    Column("", "First call", "Time of binding (allocation, compilation) and of the first call. No sample contains it.",
           units.WALL_SECONDS, lambda c: first_call_s(c.result.preparation), _WIDE),
    Column("search_s", "Search", "Time in which a library tried its kernels for the fastest one, when the variant was bound.",
           units.WALL_SECONDS, lambda c: c.result.preparation.searched_s if c.result.preparation else None,
           _RECORD | _WIDE, optional=True),
    Column("sm_clock_hz", "SM clock", "As the driver reports it.", units.COUNT,
           lambda c: c.result.conditions.sm_clock_hz if c.result.conditions else None, _RECORD),
    Column("power_w", "Power", "As the driver reports it.", units.COUNT,
           lambda c: c.result.conditions.power_w if c.result.conditions else None, _RECORD),
    Column("temperature_c", "Temperature", "As the driver reports it.", units.COUNT,
           lambda c: c.result.conditions.temperature_c if c.result.conditions else None, _RECORD),
    _time("cold_s", "Device cold"),
    _time("warm_s", "Device warm"),
    _time("call_eager_s", "Call eager p50", _QUANTILE_HELP.format(50)),
    _time("call_eager_p90_s", "Call eager p90", _QUANTILE_HELP.format(90)),
    _time("call_eager_p99_s", "Call eager p99", _QUANTILE_HELP.format(99)),
    _time("enqueue_s", "Enqueue"),
    _time("call_graph_s", "Call by graph"),
    _time("loop_s", "Loop"),
    _time("busy_s", "Busy"),
    Column("host_bound", "CPU-bound", "Back-to-back calls take more than 1.1 × the warm device time, and so does "
           "the host to enqueue one.", units.OWN_TEXT,
           lambda c: host_bound(c.result.timing), _RECORD),
    Column("", "CPU-bound", "Time of back-to-back calls divided by the warm kernel time. Above 1.1, the GPU waits for the CPU "
           "if the CPU needs more than 1.1 × the kernel time, too, to enqueue a call.",
           units.OWN_TEXT, _host_bound, View.TIMES_WIDE | View.TIMES_NARROW,
           order=lambda c: back_to_back_over_warm(c.result.timing)),
    Column("naive_first_s", "Naive, first call", _NAIVE_HELP.format("the first call"), units.SECONDS,
           lambda c: c.naive.first_s if c.naive else None, _RECORD | View.TIMES | View.MARKDOWN, optional=True),
    Column("", "Naive first / cold", _NAIVE_RATIO_HELP, units.FACTOR,
           lambda c: ratio_to_cold(c.result.timing, c.naive.first_s) if c.naive else None, View.TIMES | View.MARKDOWN,
           optional=True),
    Column("naive_mean_s", "Naive, mean", _NAIVE_HELP.format("the first 100 calls or fewer, divided by their number"),
           units.SECONDS, lambda c: c.naive.mean_s if c.naive else None, _RECORD | View.TIMES | View.MARKDOWN, optional=True),
    Column("", "Naive mean / cold", _NAIVE_RATIO_HELP, units.FACTOR,
           lambda c: ratio_to_cold(c.result.timing, c.naive.mean_s) if c.naive else None, View.TIMES | View.MARKDOWN,
           optional=True),
    Column("naive_calls", "Naive calls", "The number of calls of the naive mean.", units.COUNT,
           lambda c: c.naive.calls if c.naive else None, _RECORD | View.TIMES_WIDE, optional=True),
    Column("naive_bind_and_first_s", "Naive, with binding",
           _NAIVE_HELP.format("binding (allocation, compilation) and the first call"), units.SECONDS,
           lambda c: c.naive.bind_and_first_s if c.naive else None, _RECORD | View.TIMES_WIDE, optional=True),
    Column("energy_joules", "Energy per call", _ENERGY_HELP, units.JOULES,
           lambda c: c.energy_joules, View.EVERYWHERE | View.TIMES, optional=True),
    replace(_MEMORY_OF_CALL, name="peak_call_bytes", view=_RECORD | View.MARKDOWN | View.TIMES),
    Column("peak_bind_bytes", "Memory of binding", MEMORY_HELP.format("binding and the first call"), units.MEMORY,
           lambda c: c.result.peak_memory.bind_bytes if c.result.peak_memory else None, _RECORD | View.TIMES, optional=True),
    Column("", "How", "How the device times were taken: source of the timestamps, way of launching, and what was subtracted.",
           units.TEXT, lambda c: describe_methods_of(c.result), View.TIMES_WIDE),
    Column("figure_notes", "Notes", "Why figures that were asked for are missing, and notes on the others.", units.TEXT,
           lambda c: describe_figures_notes(c.result, c.run), _RECORD | View.TIMES_WIDE),
    Column("", "Configuration", CONFIGURATION_HELP, units.TEXT,
           lambda c: format_configuration(c.result) if c.result.configuration else None, _WIDE, width="medium",
           optional=True),
    Column("trust", "Quality", _QUALITY_HELP, units.OWN_TEXT, lambda c: describe_quality(c.quality), _RECORD),
    Column("", "Quality", _QUALITY_HELP, units.OWN_TEXT, lambda c: format_badge(c.quality),
           View.EVERYWHERE & ~_RECORD, short=lambda c: format_level(c.quality.level) if c.quality else None, width="medium",
           order=lambda c: LEVELS.index(c.quality.level) if c.quality else None),
    # Behind the quality, which has to be in sight without scrolling.
    _MEMORY_OF_CALL,
    Column("issue_rate_fraction", "Of issue rate", ISSUE_HELP, units.SHARE,
           lambda c: c.row.issue.fraction if c.row.issue else None, optional=True),
    Column("mean_clock_hz", "SM clock in calls", "Mean SM clock of the blocks of this time, measured on the device.", units.CLOCK,
           lambda c: c.row.issue.clock_hz if c.row.issue else None, optional=True),
    Column("source_digest", "Source", "Digest of the variant's source.", units.TEXT, lambda c: c.result.source_digest, _RECORD),
    Column("configuration", "Configuration", CONFIGURATION_HELP, units.TEXT,
           lambda c: configuration_text(c.result.configuration) if c.result.configuration else None, _RECORD),
    Column("tuned_by", "Tuned by", "The run that found the configuration.", units.TEXT, lambda c: c.result.tuned_by, _RECORD),
)  # fmt: skip


def case_columns(table: Sequence[Case], view: View) -> list[Column[Case]]:
    """The columns of a table of cases, with their sizes. Of bandwidth and rate only the more informative one is shown."""
    if not table:
        return []
    plan, headline = table[0].run.plan, table[0].headline
    hidden = "bandwidth_bytes_per_s" if by_rate([case.row for case in table]) else "rate_flop_per_s"
    baseline = plan.baseline if view & View.NARROW else format_variant(plan.baseline)
    named = [
        replace(
            c,
            title=c.title.replace("{headline}", headline.capitalize()),
            help=c.help.replace("{caches}", _CACHES[headline]),
            subject=c.subject.replace("{baseline}", baseline),
        )
        for c in COLUMNS
        if c.name != hidden
    ]
    return select_with_sizes(named, table, view, plan.problems)
