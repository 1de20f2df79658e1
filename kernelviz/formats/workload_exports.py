"""Runs of workloads in formats for people and other programs: Markdown, CSV, and one HTML page with the chart."""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from html import escape
from importlib.resources import files

import kernelviz
from kernelviz.core import check_name
from kernelviz.core.workload import WorkloadLimit, WorkloadRun
from kernelviz.formats import workload_document
from kernelviz.formats.browser import bundle, figure_json
from kernelviz.formats.csv import cell
from kernelviz.formats.html import allowed, packed, plotly
from kernelviz.formats.markdown import code, table_lines
from kernelviz.formats.offline.sections import when
from kernelviz.formats.offline.tables import html_table
from kernelviz.metrics.workloads import points, rows
from kernelviz.plots.workloads import chart_of
from kernelviz.tables.column import View
from kernelviz.tables.workloads import ladder_columns, record
from kernelviz.text.workload_gains import GAIN_MEANING
from kernelviz.text.workload_insight import describe_insight
from kernelviz.text.workloads import (
    MECHANICS_ONLY,
    NEVER_ON_A_ROOFLINE,
    TRACED_STEP,
    describe_counted,
    describe_devices,
    describe_notes,
    format_point,
)

MOST_CHARTS = 12
"""A page has a chart for each point of a chart of bars or lanes, at most so many, the last ones."""
MEDIA_TYPES: Mapping[str, str] = {
    "json": "application/json",
    "md": "text/markdown",
    "csv": "text/csv",
    "html": "text/html",
}


def encode(run: WorkloadRun, to: str = "json") -> bytes:
    """The run in a format: ``json`` (the document), ``md``, ``csv`` or ``html``. Errors: UnknownName."""
    writers: dict[str, Callable[[WorkloadRun], bytes]] = {
        "json": workload_document.encode,
        "md": markdown,
        "csv": as_csv,
        "html": page,
    }
    check_name("format", to, writers)
    return writers[to](run)


def format_of(file_name: str) -> str:
    """The format that the ending of a file names; ``json`` without one.

    >>> format_of("a.html"), format_of("a")
    ('html', 'json')
    """
    ending = file_name.lower().rpartition(".")[2]
    return ending if ending in MEDIA_TYPES else "json"


def is_mechanics_only(run: WorkloadRun) -> bool:
    """Whether the times of the run say nothing about GPUs."""
    return any(result.mechanics_only for result in run.results)


def facts(run: WorkloadRun) -> tuple[str, ...]:
    """Devices, date, id and software."""
    versions = ", ".join(f"{name} {version}" for name, version in run.environment.versions.items())
    return (str(describe_devices(run)), f"measured {when(run.created_at)}", f"run {run.id}", versions)


def as_csv(run: WorkloadRun) -> bytes:
    """A row per case, in SI base units."""
    records = [record(run, row) for row in rows(run)]
    columns = list(records[0])
    out = io.StringIO(newline="")
    csv.writer(out).writerows([map(cell, columns), *([cell(one[name]) for name in columns] for one in records)])
    return out.getvalue().encode("utf-8", "replace")


def markdown(run: WorkloadRun) -> bytes:
    """The ladder as a table, with the sentence above it and what cannot be said. Text of the run is written as code."""
    return ("\n".join(_markdown_lines(run)) + "\n").encode("utf-8", "replace")


def _markdown_lines(run: WorkloadRun) -> Iterator[str]:
    listed = rows(run)
    yield f"### {code(run.title or run.declared.title)}\n"
    yield f"{code(run.declared.summary)}\n"
    yield f"**{code(describe_insight(run))}**\n"
    if is_mechanics_only(run):
        yield f"{MECHANICS_ONLY}\n"
    yield from table_lines(ladder_columns(run, listed, View.MARKDOWN), listed)
    yield f"\n{GAIN_MEANING}\n"
    yield from (f"- {code(fact)}" for fact in facts(run) if fact)
    yield from (f"- {code(limit.text)}" for limit in _limits(run))
    yield f"- digest {workload_document.digest(run)}"


def _limits(run: WorkloadRun) -> list[WorkloadLimit]:
    kind = run.devices[0].kind
    return [limit for limit in run.declared.limits if limit.when in ("always", kind)]


@lru_cache(maxsize=1)
def _texts() -> tuple[str, str]:
    """The script and the style of the page."""
    folder = files("kernelviz.formats.offline")
    return (folder / "ladder.js").read_text("utf-8"), (folder / "page.css").read_text("utf-8")


def page(run: WorkloadRun) -> bytes:
    """The whole file, UTF-8. It opens from a disk, loads nothing, and shows every text of the run escaped."""
    own_script, own_style = _texts()
    script, style = bundle.chart_script() + own_script, bundle.chart_style() + own_style
    library, its_hash = plotly()
    policy = (
        f"default-src 'none'; script-src {allowed(script)} {its_hash}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    listed = rows(run)
    charts = _charts(run)
    boxes = "".join(
        f'<h3>{escape(title)}</h3><div id="{key}" class=chart hidden></div>' for key, (title, _) in charts.items()
    )
    title = run.title or run.declared.title
    label = f"<p class=warn>{escape(str(MECHANICS_ONLY))}</p>" if is_mechanics_only(run) else ""
    note = f"<p class=note>{escape(run.note)}</p>" if run.note else ""
    traced = f"<p class=note>{escape(str(TRACED_STEP))}</p>" if any(r.timeline for r in run.results) else ""
    failed = [f"{row.case.key}: {describe_notes(row)}" for row in listed if row.result and row.result.failure]
    data = packed(json.dumps({k: d for k, (_, d) in charts.items()}, ensure_ascii=False, allow_nan=False))
    html = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
<meta name="generator" content="kernelviz {escape(kernelviz.__version__)}">
<title>{escape(title)} · kernelviz</title><style>{style}</style></head>
<body><header><h1>{escape(title)}</h1>{note}<p class=facts>{escape(" · ".join(f for f in facts(run) if f))}</p>
<p>{escape(run.declared.summary)}</p>{label}</header>
<main><p id="without" class="without" hidden>This browser cannot draw the chart (<span id="why"></span>). Every value is in the
table below.</p><noscript><p class="without">The chart needs JavaScript. Every value is in the table below.</p></noscript>
<section><h2>Result</h2><p><b>{escape(str(describe_insight(run)))}</b></p>{boxes}{traced}</section>
<section><h2>All variants</h2>{html_table(ladder_columns(run, listed, View.WIDE), listed, "All variants", "ladder")}
<p class=note>The variant with a star is the baseline. {escape(str(GAIN_MEANING))}</p></section>
{_section("Cases without a value", failed)}
{_section("What this cannot say", [str(NEVER_ON_A_ROOFLINE), *(limit.text for limit in _limits(run))])}
{_section("Variants", [f"{v.name}: {v.caption} {v.idea}" for v in run.declared.variants if v.name in run.plan.variants])}
</main><footer><h2>This file</h2><p>Digest {workload_document.digest(run)}</p>
<p class="how">Made by kernelviz {escape(kernelviz.__version__)}; charts by plotly.js (MIT licence, © Plotly, Inc.), which is
inside the file. It loads nothing from anywhere.</p></footer>
<script type="text/plain" id="data">{data}</script>
<script type="text/plain" id="plotly">{library}</script>
<script type="module">{script}</script>
</body></html>
"""
    return html.encode()


def _charts(run: WorkloadRun) -> dict[str, tuple[str, object]]:
    """By the id of its box: the title of a chart and what the script draws. A chart of lines has all points in one."""
    by_point = points(run)
    keys = list(by_point) if run.declared.chart.kind in ("bars", "memory", "lanes") else list(by_point)[-1:]
    by_id: dict[str, tuple[str, object]] = {}
    for number, point in enumerate(keys[-MOST_CHARTS:]):
        title = str(format_point(run, by_point[point])) if len(keys) > 1 else run.declared.title
        figure = figure_json.drawable(chart_of(run, point=point))
        for trace in figure["data"]:
            trace.pop("customdata", None)  # points of this page lead nowhere
        alt = "; ".join(str(describe_counted(row, run.declared.figures)) for row in rows(run, point=point))
        about = {
            "title": title,
            "facts": f"{run.devices[0].name} · measured on {run.created_at[:10]}",
            "file": f"kernelviz-{run.plan.workload}",
            "link": "",
        }
        by_id[f"chart-{number}"] = (title, {"figure": figure, "alt": alt, "about": about})
    return by_id


def _section(title: str, lines: list[str]) -> str:
    listed = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<section><h2>{escape(title)}</h2><ul>{listed}</ul></section>" if lines else ""
