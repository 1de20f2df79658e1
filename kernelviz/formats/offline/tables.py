"""The tables of the offline page: every case with its time, share, verdict and trust; every figure of every case."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from kernelviz.core import units
from kernelviz.core.run import Run
from kernelviz.metrics import foreign_times
from kernelviz.metrics.figures import FIGURES, TIMES, host_bound_words, times_s
from kernelviz.metrics.quality import LEVELS, Quality, quality
from kernelviz.metrics.roofline import Headline
from kernelviz.metrics.summary import Row, by_rate, rows
from kernelviz.metrics.sweep import varying_axes
from kernelviz.plots.variant_styles import variant_words
from kernelviz.text import cells
from kernelviz.text.configuration import CONFIGURATION_HELP, format_configuration
from kernelviz.text.failures import STAGES
from kernelviz.text.quality import describe_part, describe_quality, format_level

Cell = tuple[str, float | str | Quality | None]
"""What is shown, and what it is sorted by. What stands behind a time shows its level and opens to the whole line."""
_LONG = 40
"""Words longer than this are folded."""
Heading = tuple[str, str]
"""The words above a column, and what they mean."""


def cases(run: Run, headlines: Sequence[Headline]) -> str:
    """The table of each headline; the script shows the one that is chosen."""
    return "".join(
        f"<div data-l2={headline}>{_table(*_cases(run, headline), f'Every case, {headline}', f'cases-{headline}')}</div>"
        for headline in headlines
    )


def _cases(run: Run, headline: Headline) -> tuple[list[Heading], list[list[Cell]]]:
    found = rows(run, run.environment.roofs, headline)
    scale, unit = cells.time_unit([r.figure.estimate for r in found if r.figure])
    axes = _axes(found)
    computes = by_rate(found)
    configured = any(row.result.configuration for row in found)
    headings = [
        ("variant", ""),
        *((axis, "Size of this axis.") for axis in axes),
        (f"{headline} time, {unit}", cells.TIME_HELP.format(headline=cells.HEADLINES[headline])),
        ("±, %", cells.WIDTH_HELP),
        ("TFLOP/s" if computes else "GB/s", cells.RATE_HELP),
        ("of roof, %", cells.SHARE_HELP),
        (f"against {variant_words(run.plan.baseline)}", cells.AGAINST_HELP),
        ("result", cells.RESULT_HELP),
        ("first call, s", cells.FIRST_CALL_HELP),
        *([("configuration", CONFIGURATION_HELP)] if configured else []),
        ("trust", "What stands behind the time, part by part: see Method below."),
    ]
    return headings, [_case(run, row, axes, scale, computes, headline, configured=configured) for row in found]


def _case(
    run: Run, row: Row, axes: Sequence[str], scale: float, computes: bool, headline: Headline, *, configured: bool
) -> list[Cell]:
    rate = row.rate_flop_per_s if computes else row.bandwidth_bytes_per_s
    behind = quality(row.result, headline, run.method.clock)
    return [
        (variant_words(row.result.variant), row.result.variant),
        *((f"{row.result.problem.sizes[a]:,}", row.result.problem.sizes[a]) for a in axes),
        _number(row.figure.estimate / scale if row.figure else None, ".2f"),
        _number(_percent(row.figure.half_width if row.figure else None), ".2f"),
        _number(None if rate is None else rate / (1e12 if computes else 1e9), ".4g" if computes else ".1f"),
        _number(_percent(row.efficiency), ".1f"),
        (str(cells.against_words(row)), row.speed_up),
        (str(cells.outcome_words(row)), str(cells.outcome_words(row))),
        _number(cells.first_call_s(row.result.preparation), ".3f"),
        *([(format_configuration(row.result) or "–", format_configuration(row.result))] if configured else []),
        (str(describe_quality(behind)), behind),
    ]


def figures(run: Run) -> str:
    """Every figure of every case, in one unit."""
    found = rows(run, run.environment.roofs)
    times = [times_s(row.result) for row in found]
    scale, unit = cells.time_unit([t for case in times for t in case.values() if t is not None])
    axes = _axes(found)
    questions = {f.name: f.question for f in FIGURES}
    headings = [("variant", ""), *((axis, "Size of this axis.") for axis in axes)]
    headings += [(f"{name}, {unit}", questions.get(name, "")) for name in TIMES.values()]
    headings += [("host-bound", ""), ("energy, mJ a call", "By the driver's counter, over calls back to back.")]
    lines: list[list[Cell]] = []
    for row, case in zip(found, times, strict=True):
        energy = row.result.timing.energy if row.result.timing else None
        lines.append(
            [
                (variant_words(row.result.variant), row.result.variant),
                *((f"{row.result.problem.sizes[a]:,}", row.result.problem.sizes[a]) for a in axes),
                *(_number(None if t is None else t / scale, ".2f") for t in case.values()),
                (host_bound_words(row.result.timing) or "–", host_bound_words(row.result.timing)),
                _number(None if energy is None else energy.joules * 1e3, ".3g"),
            ]
        )
    return _table(headings, lines, "Every figure of every case", "figures")


def others(run: Run) -> str:
    """The times of a run that another tool took, every case of it, and how each was taken."""
    found = rows(run, run.environment.roofs)
    axes, names = _axes(found), foreign_times.names(run)
    ways = foreign_times.methods(run)
    headings = [("variant", ""), *((axis, "Size of this axis.") for axis in axes), *((n, ways[n]) for n in names)]
    lines: list[list[Cell]] = []
    for row in found:
        times = foreign_times.of_case(row.result)
        without: Cell = (f"✕ {STAGES[row.failure.stage]}" if row.failure else "–", None)
        lines.append(
            [
                (variant_words(row.result.variant), row.result.variant),
                *((f"{row.result.problem.sizes[a]:,}", row.result.problem.sizes[a]) for a in axes),
                *((units.seconds(times[n].estimate), times[n].estimate) if n in times else without for n in names),
            ]
        )
    told = "".join(f"<li><b>{escape(n)}</b> {escape(way)}</li>" for n, way in ways.items())
    return (
        f"<p>{foreign_times.NOT_OURS}</p>{_table(headings, lines, 'Every time of every case', 'others')}<ul>{told}</ul>"
    )


def kernels(run: Run) -> str:
    """The kernels that a call of each case launches; empty where none were recorded."""
    found = [row.result for row in rows(run, ()) if row.result.kernels]
    if not found:
        return ""
    axes = varying_axes([r.problem for r in found]) or tuple(found[0].problem.sizes)
    headings = [("variant", ""), *((a, "Size of this axis.") for a in axes), ("kernel", "")]
    headings += [("time, µs", "Its median over the samples, with what tracing adds."), ("grid", ""), ("block", "")]
    headings += [("registers a thread", cells.REGISTERS_HELP), ("shared memory, B", cells.SHARED_HELP)]
    headings += [("local memory, B a thread", cells.LOCAL_HELP)]
    lines: list[list[Cell]] = [
        [
            (variant_words(r.variant), r.variant),
            *((f"{r.problem.sizes[a]:,}", r.problem.sizes[a]) for a in axes),
            (k.name, k.name),
            _number(None if k.duration_s is None else k.duration_s * 1e6, ".2f"),
            *((" × ".join(map(str, size)) if size else "unknown", None) for size in (k.grid, k.block)),
            _number(k.registers_per_thread, "d"),
            _number(k.shared_memory_bytes, ",d"),
            _number(k.local_memory_bytes, ",d"),
        ]
        for r in found
        for k in r.kernels
    ]
    return f"<section><h2>Kernels of a call</h2>{_table(headings, lines, 'Kernels of each case', 'kernels')}</section>"


def _axes(found: Sequence[Row]) -> tuple[str, ...]:
    problems = [r.result.problem for r in found]
    return varying_axes(problems) or (tuple(problems[0].sizes) if problems else ())


def _percent(fraction: float | None) -> float | None:
    return None if fraction is None else fraction * 100


def _number(value: float | None, form: str) -> Cell:
    return ("–", None) if value is None else (format(value, form), value)


def _table(headings: Sequence[Heading], lines: Iterable[Sequence[Cell]], name: str, key: str) -> str:
    """A table whose headings the script turns into buttons that sort it. A cell that is sorted by a number carries it."""
    head = "".join(
        f"<th scope=col{f' title={chr(34)}{escape(said)}{chr(34)}' if said else ''}>{escape(h)}" for h, said in headings
    )
    body = "".join(f"<tr>{''.join(map(_cell, line))}</tr>" for line in lines)
    return (
        f'<div class=scroll tabindex=0 role=region aria-label="{escape(name)}"><table id={key}>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(cell: Cell) -> str:
    words, value = cell
    if isinstance(value, Quality):
        parts = " · ".join(str(describe_part(p)) for p in value.parts)
        level = LEVELS.index(value.level)
        return f"<td data-v={level}><details><summary>{escape(str(format_level(value.level)))}</summary>{escape(parts)}</details>"
    if isinstance(value, int | float):
        aligned = " class=n" if words[:1].isdigit() else ""
        return f"<td{aligned} data-v={value:.9g}>{escape(words)}"
    return f"<td{' class=long' if len(words) > _LONG else ''}>{escape(words)}"
