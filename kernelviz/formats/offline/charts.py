"""The data of the charts of the offline page: every view that a reader can choose, with alternative text for screen readers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from kernelviz import plots
from kernelviz.core import Problem, Run
from kernelviz.formats.browser import figure_json
from kernelviz.formats.offline.selection import sizes_with_charts
from kernelviz.hardware.datasheet import ceilings_by_device
from kernelviz.metrics.figures import Headline, figure_of
from kernelviz.metrics.placement import placed
from kernelviz.metrics.rows import Row, rows, usual_quantity
from kernelviz.metrics.samples import spread
from kernelviz.metrics.summary import best_of
from kernelviz.metrics.sweep import line_sizes, swept_axis, tied_axes, varying_axes
from kernelviz.metrics.winner import winners
from kernelviz.text import (
    Text,
    describe_bars,
    describe_chart_by_size,
    describe_comparison_with_baseline,
    describe_outcome,
    describe_quality_of,
    describe_roofline,
    describe_samples,
    describe_spread,
    describe_winners,
    format_host_bound,
    format_size,
    format_sizes,
    format_time,
    format_variant,
)
from kernelviz.text.times import FIGURES

BY_SIZE = {
    "bandwidth": plots.bandwidth_by_size,
    "rate": plots.rate_by_size,
    "time": plots.latency_by_size,
    "speed-up": plots.speed_up_by_size,
}
FIELDS: dict[Headline, str] = {"cold": "device_cold_s", "warm": "device_warm_s"}
_NAMES = {f.field: f.name for f in FIGURES}


@dataclass(frozen=True, slots=True)
class View:
    """A run with the choices that it offers."""

    run: Run
    headlines: tuple[Headline, ...]
    problems: tuple[Problem, ...]
    axes: tuple[str, ...]
    sizes: int
    """How many sizes have a result; `problems` are those of them that can be chosen."""


def view_of(run: Run) -> View:
    """The choices of a run: the times that any case has, the sizes with a result, and the axes for the charts by size."""
    problems = tuple({r.problem.key: r.problem for r in run.results}.values())
    warm = any(figure_of(r.timing, "warm") for r in run.results)
    headlines: tuple[Headline, ...] = ("cold", "warm") if warm else ("cold",)
    axis = swept_axis(problems)
    several = axis is not None and line_sizes(problems[0], problems, axis)
    free = (
        [a for a in varying_axes(problems) if a not in (axis, *tied_axes(problems, axis))] if axis and several else []
    )
    return View(run, headlines, sizes_with_charts(run, problems), (axis, *free) if axis else (), len(problems))


def data(view: View) -> dict[str, Any]:
    """The data for the page's script: choices, charts and their texts."""
    charts, texts = {}, {}
    lines: dict[str, Any] = {}
    for headline in view.headlines:
        table = rows(view.run, view.run.environment.roofs, headline)
        for key, figure, text in (
            *_by_size(view, table, headline), *_at_size(view, headline), *_samples(view, table, headline),
        ):  # fmt: skip
            charts[f"{headline}/{key}"], texts[f"{headline}/{key}"] = figure_json.plain(figure), str(text)
        lines |= {f"{headline}/{k}": v for k, v in _lines(view, table, headline)}
    return {
        "l2": list(view.headlines),
        "show": [*BY_SIZE, "winner"],
        "usual": usual_quantity(rows(view.run, view.run.environment.roofs)),
        "axes": list(view.axes),
        "sizes": [format_sizes(p) for p in view.problems],
        "keys": [p.key for p in view.problems],
        "variants": [format_variant(v) for v in view.run.plan.variants],
        "charts": charts,
        "words": texts,
        "about": {
            "title": view.run.title or view.run.plan.op,
            "facts": f"{view.run.environment.device.name} · measured on {view.run.created_at[:10]}",
            "link": "",
            "file": f"kernelviz-{view.run.id}",
        },
        "lines": lines,
    }


_Charts = Iterator[tuple[str, go.Figure, str | Text]]


def _by_size(view: View, table: Sequence[Row], headline: Headline) -> _Charts:
    run, roofs = view.run, view.run.environment.roofs
    for axis in view.axes or (None,):
        for name, draw in BY_SIZE.items():
            yield (
                f"by/{name}/{axis or ''}",
                draw(run, roofs=roofs, axis=axis, headline=headline),
                describe_chart_by_size(name),
            )
        leads = describe_winners(
            table, winners(table, headline), axis, format_variant, format_size, best_of(table, headline)
        )
        figure = plots.winner_by_size(run, axis=axis, roofs=roofs, headline=headline)
        yield f"by/winner/{axis or ''}", figure, describe_chart_by_size("winner", leads)
    cases = placed(run, run.title or run.id, roofs, roofs, headline)
    text = f"Roofline of {sum(c.drawable for c in cases)} cases; their shares of the roof are in the table"
    yield "all", plots.rates_by_intensity(cases), text


def _at_size(view: View, headline: Headline) -> _Charts:
    run, roofs = view.run, view.run.environment.roofs
    sheets = ceilings_by_device([run.environment.device.name])
    for i, problem in enumerate(view.problems):
        figure = plots.rate_by_intensity(run, problem, roofs=roofs, headline=headline, sheets=sheets)
        yield f"roof/{i}", figure, describe_roofline(problem)
        yield f"bars/{i}", plots.time_by_variant(run, problem, roofs=roofs, headline=headline), describe_bars(problem)


def _samples(view: View, table: Sequence[Row], headline: Headline) -> _Charts:
    """For each size: the distribution of the samples of all variants, and the samples of each variant in measurement order."""
    plan, field = view.run.plan, FIELDS[headline]
    for i, problem in enumerate(view.problems):
        here = [r for r in table if r.result.problem == problem]
        figures = {r.result.variant: r.figure for r in here if r.figure is not None and r.figure.samples}
        if figures:
            yield (
                f"spread/{i}",
                plots.share_by_time(figures, plan.op, beside=plan.variants),
                describe_samples(list(figures), _NAMES[field]),
            )
        for variant, figure in figures.items():
            if figure.blocks:
                chart = plots.samples_by_order(figure, field, op=plan.op, variant=variant, beside=plan.variants)
                text = f"{_NAMES[field]} samples of {format_variant(variant)} in the order of measurement"
                yield f"order/{i}/{plan.variants.index(variant)}", chart, text


def _lines(view: View, table: Sequence[Row], headline: Headline) -> Iterator[tuple[str, Any]]:
    """The text beside charts: each variant's time, verdict and quality beside the bars, and facts beside the samples."""
    run = view.run
    for i, problem in enumerate(view.problems):
        lines = []
        for row in (r for r in table if r.result.problem == problem):
            number = run.plan.variants.index(row.result.variant)
            quality = str(describe_quality_of(row.result, headline, run.method.clock))
            lines.append([number, _format_case(row, headline), quality])
            facts = spread(row.result, FIELDS[headline])
            if facts is not None:
                yield f"{i}/{number}", list(map(str, describe_spread(facts)))
        yield str(i), lines


def _format_case(row: Row, headline: Headline) -> str:
    if row.failure is not None:
        return str(describe_outcome(row))
    if row.figure is None:
        return f"no {headline} time"
    bound = format_host_bound(row.result.timing)
    return f"{format_time(row.figure)} · {describe_comparison_with_baseline(row)}{f' · {bound}' if bound else ''}"


def thinned(charts_data: dict[str, Any], most: int) -> dict[str, Any]:
    """The same data (see `data`) with at most `most` points in each series of samples. With 0, samples are left out."""
    chosen = {k: c for k, c in charts_data["charts"].items() if most or k.split("/")[1] not in ("spread", "order")}
    charts = {k: {**c, "data": [figure_json.evenly(t, most) for t in c["data"]]} for k, c in chosen.items()}
    return {**charts_data, "charts": charts, "words": {k: charts_data["words"][k] for k in charts}}
