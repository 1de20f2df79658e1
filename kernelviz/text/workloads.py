"""Text about workloads: values, gains, notes, progress, what cannot be said, and the sentence above the chart."""

from collections.abc import Mapping, Sequence

from msgspec import UNSET

from kernelviz.core import Failure, units
from kernelviz.core.result import half_width
from kernelviz.core.workload import (
    AxisValue,
    Clock,
    FigureUnit,
    Measured,
    WorkloadAxis,
    WorkloadFigure,
    WorkloadNote,
    WorkloadNoteKind,
    WorkloadProgress,
    WorkloadRun,
    WorkloadStep,
    WorkloadValue,
)
from kernelviz.metrics.timelines import hidden_share
from kernelviz.metrics.workload_quality import workload_quality
from kernelviz.metrics.workloads import (
    Incomparable,
    WorkloadComparison,
    WorkloadPair,
    WorkloadRow,
    points,
    rows,
    varying_axes,
)
from kernelviz.text.failures import STAGES, describe_failure, format_stage, has_description
from kernelviz.text.text import Text, join
from kernelviz.text.workload_gains import (
    VERDICTS,
    describe_verdict,
    describe_workload_quality,
    format_gain,
)

MECHANICS_ONLY = Text(
    "Mechanics only: measured on a processor in place of a GPU. The mechanism works, and its bytes and errors are true; the "
    "times say nothing about GPUs."
)
MECHANICS_LABEL = Text("mechanics only")
NEVER_ON_A_ROOFLINE = Text(
    "A workload is larger than a kernel: it has figures of its own and no roof, and it is never on a roofline."
)
TRACED_STEP = Text(
    "One step of the first rank, recorded by a tracer, which takes time of its own: the step of the timeline is longer than the "
    "steps that are timed below, and its hidden share may be outside of the interval of all recorded steps."
)
CLOCKS: Mapping[Clock, Text] = {
    "cuda_events": Text("CUDA events"),
    "host": Text("host clock"),
    "cupti": Text("device's own stamps (CUPTI)"),
    "allocator": Text("torch's allocator"),
    "process": Text("operating system's counters"),
    "arithmetic": Text("arithmetic"),
}
STEPS: Mapping[WorkloadStep, Text] = {
    "waiting": Text("waiting for the device"),
    "starting": Text("starting the measuring process"),
    "preparing": Text("preparing"),
    "compiling": Text("compiling"),
    "warming_up": Text("warming up"),
    "measuring": Text("measuring"),
    "checking": Text("checking"),
}
_NOTES: Mapping[WorkloadNoteKind, str] = {
    "page_cache_warm": "what was read was in the page cache",
    "page_cache_dropped": "what was read was dropped from the page cache before",
    "page_cache_unknown": "whether what was read was in the page cache is not known",
    "steps_skipped": "the scaler skipped {value:g} steps",
    "rounds_few": "only {value:g} rounds, too few for an interval",
    "not_interleaved": "measured alone, not in rounds with the baseline",
    "diverged": "the loss left the range of the baseline",
    "not_finite": "{text} is not a finite number",
    "peer_copy": "a peer copy reaches {rate}",
    "no_peer_access": "the GPUs have no direct access to each other's memory",
    "workers_more_than_cores": "more workers than the {value:g} cores",
    "groups_unknown": "the kernels of the call could not be assigned to its parts: {text}",
    "other": "{text}",
}
INCOMPARABLE: Mapping[Incomparable, Text] = {
    "failed_a": Text("A has no usable value"),
    "failed_b": Text("B has no usable value"),
    "no_value": Text("a side does not have this figure"),
    "other_kind": Text("one side is a GPU, the other a processor"),
    "one_measurement": Text("A and B are the same measurement"),
    "no_direction": Text("neither more nor less is better"),
}


SMALL_FRACTION = 1e-3
"""A smaller fraction is no percentage that anyone reads."""


def format_number(value: float | None, unit: FigureUnit, digits: int = 4) -> Text:
    """A value with its unit.

    >>> str(format_number(2.15e-3, "s")), str(format_number(2**20, "B")), str(format_number(0.5, "fraction"))
    ('2.150 ms', '1.00 MiB', '50.0 %')
    """
    if value is None:
        return Text("unknown")
    match unit:
        case "s":
            return Text(units.seconds(value, digits))
        case "B":
            return Text(units.size_bytes(value))
        case "B/s":
            return Text(units.rate(value, "B/s", digits))
        case "1/s":
            return Text(f"{units.significant(value, digits)} /s")
        case "fraction":
            return Text(units.percent(value) if abs(value) >= SMALL_FRACTION or not value else f"{value:.2e}")
        case "x":
            return Text(f"{units.significant(value, 3)} ×")
        case "count":
            return Text(f"{value:,.0f}")
        case "number":
            return Text(units.significant(value, digits))


def format_estimate(value: WorkloadValue | None, unit: FigureUnit) -> Text:
    """A value with the digits that its interval leaves, as `format_value`, without the interval."""
    if isinstance(value, Measured):
        return format_number(value.estimate, unit, units.digits_of(half_width(value.estimate, value.low, value.high)))
    return Text("–") if value is None else format_number(value.value, unit)


def format_value(value: WorkloadValue | None, unit: FigureUnit, *, scientific: bool = False) -> Text:
    """A value with the digits that its interval leaves, and its interval where it has one. `scientific`: a counted fraction in
    powers of ten, as the others of its column.

    >>> str(format_value(Measured(estimate=2.15e-3, low=2.10e-3, high=2.2e-3), "s"))
    '2.15 ms (2.10 ms to 2.20 ms)'
    """
    text = format_estimate(value, unit)
    if not isinstance(value, Measured):
        by_exponent = scientific and value is not None and unit == "fraction" and value.value
        return Text(f"{value.value:.2e}") if by_exponent and value is not None else text
    digits = units.digits_of(half_width(value.estimate, value.low, value.high))
    if value.low is None or value.high is None:
        return text + (f" (no interval, {value.n} samples)" if value.samples else "")
    return text + f" ({format_number(value.low, unit, digits)} to {format_number(value.high, unit, digits)})"


def format_axis_value(value: AxisValue, axis: WorkloadAxis) -> Text:
    """A value of an axis with its unit.

    >>> str(format_axis_value(2**20, WorkloadAxis(name="size", title="Size", kind="bytes")))
    '1 MiB'
    >>> str(format_axis_value(2000, WorkloadAxis(name="delay_us", title="Delay", unit="µs")))
    '2,000 µs'
    """
    if isinstance(value, str):
        return Text(value)
    if axis.kind != "bytes":
        return Text(f"{value:,}" if axis.unit is UNSET else f"{value:,} {axis.unit}")
    for scale, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if value >= scale and value % scale == 0:
            return Text(f"{value // scale:,} {unit}")
    return Text(f"{value:,} B")


def axis_label(axis: WorkloadAxis) -> Text:
    """The label of a box for bare numbers: the title with the unit."""
    return Text(axis.title if axis.unit is UNSET else f"{axis.title}, {axis.unit}")


def format_point(run: WorkloadRun, values: Mapping[str, AxisValue], axes: Sequence[str] | None = None) -> Text:
    """The values of the axes at a point, by default of those that vary; of all if none does."""
    chosen = axes if axes is not None else varying_axes(run) or [a.name for a in run.declared.axes]
    by_name: dict[str, WorkloadAxis] = {a.name: a for a in run.declared.axes}
    parts = [
        f"{by_name[name].title.lower()} {format_axis_value(values[name], by_name[name])}"
        for name in chosen
        if name in by_name and name in values
    ]
    return Text(", ".join(parts))


def describe_devices(run: WorkloadRun) -> Text:
    """The devices of a run, with the hardware threads of the host where they were recorded."""
    names = " + ".join(device.name for device in run.devices)
    first = run.devices[0]
    count = run.environment.threads if first.threads is None else first.threads
    if count is None:
        return Text(names)
    host = "" if first.kind == "cpu" else "host with "
    return Text(f"{names}, {host}{units.counted(count, 'hardware thread')}")


def describe_note(note: WorkloadNote) -> Text:
    """A note on a case."""
    value = 0.0 if note.value is None else note.value
    return Text(_NOTES[note.kind].format(value=value, rate=units.rate(value, "B/s", 3), text=note.text))


def describe_notes(row: WorkloadRow) -> Text:
    """The notes of a case, or why it has no value."""
    if row.result is None:
        return Text("not measured yet")
    if row.result.failure is not None:
        return describe_failed(row.result.failure)
    return join("; ", map(describe_note, row.result.notes))


def describe_caveats(run: WorkloadRun, listed: Sequence[WorkloadRow]) -> tuple[Text, ...]:
    """Each case whose headline is not of good quality, with what stands behind that."""
    lines, axes = [], varying_axes(run)
    for row in listed:
        quality = workload_quality(row, run.declared.headline)
        if quality is not None and quality.reasons:
            where = f" ({format_point(run, row.case.values, axes)})" if axes else ""
            lines.append(Text(f"{row.case.variant}{where}: {describe_workload_quality(quality)}"))
    return tuple(lines)


def describe_failed(failure: Failure) -> Text:
    """Why a case has no usable value."""
    reason = f": {describe_failure(failure)}" if has_description(failure) else ""
    return Text(f"{format_stage(failure)}{reason}")


def describe_progress(now: WorkloadProgress | None, run: WorkloadRun | None = None) -> Text:
    """What a run does now. `run`: names the axes of the point by their titles."""
    if now is None:
        return Text("")
    if now.step == "waiting" and now.holder:
        return Text(f"waiting for {now.holder}")
    rounds = f", round {now.done} of at most {now.of}" if now.done is not None and now.of else ""
    values = points(run).get(now.point) if run is not None else None
    point = now.point if values is None or run is None else format_point(run, values)
    where = f" ({point})" if now.point else ""
    return Text(f"{STEPS[now.step]} {now.variant}".rstrip() + rounds + where)


def describe_figure(run: WorkloadRun, figure: WorkloadFigure, point: str | None = None) -> Text:
    """One sentence about a figure that a chart draws, at a point or at the last one that has a value: which variant has the best
    value, and whether that clears the noise floor. Empty where nothing was compared, or neither direction is better."""
    listed = [row for row in rows(run, point=point) if row.value(figure.name) is not None]
    compared = [row for row in listed if figure.name in row.gains and row.case.point == listed[-1].case.point]
    if not compared:
        return Text("")
    row = max(compared, key=lambda one: one.gains[figure.name].ratio.estimate)
    gain, base = row.gains[figure.name], run.plan.baseline
    heading = f"{figure.title}{format_where(run, row.case.values)}: "
    value = f"{row.case.variant} has {format_value(row.value(figure.name), figure.unit)}"
    if gain.ratio.estimate <= 1:
        return Text(f"{heading}no variant has a better value than {base}.")
    if gain.verdict is None or gain.verdict.kind == "faster":
        return Text(f"{heading}{value}, better than {base} by {format_gain(gain)}.")
    return Text(f"{heading}{value}; the difference from {base} does not clear the noise floor.")


def describe_timeline(row: WorkloadRow, figures: Sequence[WorkloadFigure]) -> Text:
    """The values of the case whose timeline is drawn, of the figures that the chart is about."""
    values = [f"{f.title} {format_value(row.value(f.name), f.unit)}" for f in figures if row.value(f.name) is not None]
    return Text(f"{row.case.variant}: {', '.join(values)}.{_of_timeline(row)}" if values else "")


def _of_timeline(row: WorkloadRow) -> str:
    """The hidden share of the drawn step, which is one of several."""
    timeline = None if row.result is None else row.result.timeline
    share = None if timeline is None else hidden_share(timeline.spans)
    return "" if share is None else f" In the drawn step, {units.percent(share)} of the communication is hidden."


def format_where(run: WorkloadRun, values: Mapping[str, AxisValue]) -> str:
    """The place of a value in a sentence; empty in a run of a single point, but for what is planted there."""
    planted = [axis.name for axis in run.declared.axes if axis.planted is True and values.get(axis.name)]
    axes = varying_axes(run) or planted
    return f" at {format_point(run, values, axes)}" if axes else ""


def describe_neutral(figure: WorkloadFigure) -> Text:
    """What a chart of a figure says about the order of its lines where neither direction is better; else empty."""
    if figure.better != "neither":
        return Text("")
    return Text(
        f"{figure.title} ranks no variants, because neither more nor less of it is better. {figure.help}".strip()
    )


def figure_heading(figure: WorkloadFigure) -> Text:
    """What the help of a figure's column says."""
    better = {"lower": " Less is better.", "higher": " More is better.", "neither": ""}[figure.better]
    how = (
        " Median with its 95 % interval."
        if figure.origin == "measured"
        else " Counted or by arithmetic, so it has no interval."
    )
    return Text(f"{figure.help}{better}{how}".strip())


def describe_method(row: WorkloadRow, figure: str) -> Text:
    """How a value was measured: clock and samples."""
    value = row.value(figure)
    if value is None:
        return Text("")
    if not isinstance(value, Measured):
        return CLOCKS[value.clock]
    rounds = " in shared rounds" if value.rounds else ""
    return Text(f"{CLOCKS[value.clock]}, {units.counted(value.n, 'sample')}{rounds}")


def describe_comparison(comparison: WorkloadComparison) -> Text:
    """One sentence about two runs or two variants."""
    counts = comparison.counts
    total = sum(counts.values())
    if not total:
        return Text("The two have no case in common, so there is nothing to compare.")
    parts = [f"{counts[kind]} {VERDICTS[kind]}" for kind in ("faster", "slower", "same", "unclear") if counts[kind]]
    parts += [f"{counts['none']} without a verdict"] if counts["none"] else []
    title = comparison.b.declared.headline.title
    return Text(f"B compared with A in {title}, {units.counted(total, 'case')}: {', '.join(parts)}.")


def describe_differences(comparison: WorkloadComparison) -> tuple[Text, ...]:
    """What else differs between two runs."""
    lines = []
    if comparison.other_device:
        names = (" + ".join(d.name for d in run.devices) for run in (comparison.a, comparison.b))
        lines.append(Text("The devices differ: {} in A, {} in B.".format(*names)))
    if comparison.other_source:
        lines.append(Text("The code of the workload differs, or is unknown on one side."))
    versions = (comparison.a.environment.versions, comparison.b.environment.versions)
    for package in comparison.other_software:
        first, second = (of.get(package, "none") for of in versions)
        lines.append(Text(f"{package} differs: {first} in A, {second} in B."))
    return tuple(lines)


def describe_pair(pair: WorkloadPair) -> Text:
    """The verdict of a pair with its reason, or why it has none."""
    if pair.why is not None:
        failure = pair.a.failure if pair.why == "failed_a" else pair.b.failure
        stage = f" ({STAGES[failure.stage]})" if pair.why in ("failed_a", "failed_b") and failure is not None else ""
        return INCOMPARABLE[pair.why] + stage
    return describe_verdict(pair.gain) if pair.gain is not None else Text("")


def describe_counted(row: WorkloadRow, figures: Sequence[WorkloadFigure]) -> Text:
    """All values of a row on one line, for the alternative text of a chart."""
    values = (f"{f.title} {format_estimate(row.value(f.name), f.unit)}" for f in figures if row.value(f.name))
    return Text(f"{row.case.variant}: {', '.join(values) or str(describe_notes(row))}")
