"""A ladder as one HTML page that reads like a work log: the chart, and for each rung its idea, figure, gain and source diff.

It follows the rules of the offline page of a run (`formats.html`): it opens from a disk, loads nothing, runs only its own two
scripts by their hashes, and shows every text of the run escaped.
"""

import json
import shlex
from collections.abc import Sequence
from functools import lru_cache
from html import escape
from importlib.resources import files

import kernelviz
from kernelviz.core.command import launch_options
from kernelviz.formats.browser import bundle, figure_json
from kernelviz.formats.html import allowed, packed, plotly
from kernelviz.formats.offline import sections
from kernelviz.metrics.ladder import BackendLadder, Ladder, Metric, Step
from kernelviz.metrics.ladder_changes import LadderChanges
from kernelviz.metrics.ladder_summary import summary_of, value_of
from kernelviz.plots.ladder import title_of, value_by_step
from kernelviz.plots.ladder_image import bars_of_step
from kernelviz.text.ladder import (
    HOW_TO_READ,
    describe_ages,
    describe_library,
    format_backend,
    format_excluded,
    format_gain,
    format_roof,
    format_value,
)
from kernelviz.text.ladder_changes import (
    describe_unread_code,
)
from kernelviz.text.ladder_facts import facts_of_step
from kernelviz.text.ladder_markdown import Excerpt, excerpts
from kernelviz.text.ladder_summary import describe_summary
from kernelviz.text.results import format_variant
from kernelviz.text.sizes import format_problem

_OPEN_LINES = 60
"""A diff of at most so many lines is open when the page opens."""
_STYLE = """
.rung { border-top: 1px solid var(--line); padding-top: 0.4rem; } .rung h3 { font-size: 1.05rem; }
.rung svg { max-width: 100%; height: auto; display: block; margin: 0.5rem 0; }
.rung dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.15rem 0.9rem; margin: 0.4rem 0; }
.rung dt { color: var(--soft); } .rung dd { margin: 0; }
.diff .plus { color: light-dark(#1B6B3A, #6FCF97); } .diff .minus { color: light-dark(#A32020, #F08A8A); }
.idea { max-width: 60rem; } main { max-width: 72rem; }
@media (max-width: 700px) { .rung dl { grid-template-columns: 1fr; } .rung dd { margin-bottom: 0.3rem; } }
"""


@lru_cache(maxsize=1)
def _script() -> str:
    return (files("kernelviz.formats.offline") / "ladder.js").read_text("utf-8")


def page(ladder: Ladder, changes: LadderChanges, *, metric: Metric | None = None, backend: str | None = None) -> bytes:
    """The whole file, UTF-8. `backend`: only this ladder."""
    by = metric or ladder.metric
    chosen = ladder.with_times(backend)
    run, problem = ladder.run, ladder.problem
    script, style = bundle.chart_script() + _script(), bundle.chart_style() + _page_style() + _STYLE
    library, its_hash = plotly()
    policy = (
        f"default-src 'none'; script-src {allowed(script)} {its_hash}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    title = f"Ladder of {format_problem(problem)}"
    facts = [run.environment.device.name, f"measured {sections.when(run.created_at)}", f"run {run.id}"]
    note = "".join(f"<p class=note>{escape(text)}</p>" for text in (run.title, run.note) if text)
    ladders = "".join(_ladder(ladder, of, changes, by) for of in chosen) or "<p>No rung has a correct time yet.</p>"
    html = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
<meta name="generator" content="kernelviz {escape(kernelviz.__version__)}">
<title>{escape(title)} · kernelviz</title><style>{style}</style></head>
<body><header><h1>{escape(title)}</h1>{note}<p class=facts>{escape(" · ".join(facts))}</p>
{_paragraph(str(describe_unread_code(changes, ladder.problem)))}</header>
<main><p id="without" class="without" hidden>This browser cannot draw the chart (<span id="why"></span>). Every value is in the
text below.</p><noscript><p class="without">The chart needs JavaScript. Every value is in the text below.</p></noscript>
{ladders}
{_library(ladder, by)}
{_rest(ladder, backend)}
<section><h2>How to read this</h2>{_list(HOW_TO_READ)}</section>
<section><h2>Measure it again</h2><pre tabindex=0>{escape(_command(ladder))}</pre></section>
<section><h2>Environment</h2>{sections.environment(run, run.environment.roofs)}</section></main>
<footer><h2>This file</h2>{sections.seal(run)}<p class="how">Made by kernelviz {escape(kernelviz.__version__)}; charts by
plotly.js (MIT licence, © Plotly, Inc.), which is inside the file. It loads nothing from anywhere.</p></footer>
<script type="text/plain" id="data">{packed(_data(ladder, chosen, by))}</script>
<script type="text/plain" id="plotly">{library}</script>
<script type="module">{script}</script>
</body></html>
"""
    return html.encode()


@lru_cache(maxsize=1)
def _page_style() -> str:
    return (files("kernelviz.formats.offline") / "page.css").read_text("utf-8")


def _data(ladder: Ladder, chosen: Sequence[BackendLadder], metric: Metric) -> str:
    """The charts by the id of their box. Points name the sections of their rungs."""
    charts = {}
    for of in chosen:
        figure = figure_json.drawable(value_by_step(ladder, of.backend, metric))
        sections_of = {step.variant: _id(of, step) for step in of.steps}
        for trace in figure["data"]:
            if "customdata" in trace:
                trace["customdata"] = [sections_of[variant] for variant in trace["customdata"]]
        device = f"{ladder.run.environment.device.name} · measured on {ladder.run.created_at[:10]}"
        about = {
            "title": title_of(of, metric),
            "facts": device,
            "file": f"kernelviz-ladder-{ladder.problem.op}",
            "link": "",
        }
        charts[f"chart-{of.backend}"] = {"figure": figure, "alt": _alt(of, metric), "about": about}
    return json.dumps(charts, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _alt(of: BackendLadder, metric: Metric) -> str:
    said = (
        f"{format_variant(s.variant)}: {format_value(value_of(s.row, metric), metric)}, {format_gain(s)}"
        for s in of.correct
    )
    return f"{title_of(of, metric)}. {'; '.join(said)}."


def _ladder(ladder: Ladder, of: BackendLadder, changes: LadderChanges, metric: Metric) -> str:
    summary = escape(str(describe_summary(summary_of(ladder, of), metric)))
    log = "".join(_section(ladder, of, step, changes, metric) for step in of.steps)
    return (
        f"<section><h2>{escape(format_backend(of.backend))}</h2><p><b>{summary}</b></p>"
        f"{_paragraph(str(describe_ages(of)))}"
        f'<div id="chart-{escape(of.backend)}" class="chart" hidden></div>{log}</section>'
    )


def _id(of: BackendLadder, step: Step) -> str:
    return f"rung-{of.backend}-{step.number}"


def _section(ladder: Ladder, of: BackendLadder, step: Step, changes: LadderChanges, metric: Metric) -> str:
    source = changes.sources.get(step.variant)
    facts = facts_of_step(ladder, of, step, changes, metric)
    pairs = "".join(f"<dt>{name}<dd>{escape(text)}" for name, text in facts)
    diffs = "".join(map(_excerpt, excerpts(source))) if source is not None else ""
    return (
        f'<article class="rung" id="{escape(_id(of, step))}" tabindex="-1"><h3>{step.number}. '
        f"{escape(format_variant(step.variant))}</h3><p class=idea>{escape(step.declared.idea)}</p>"
        f"{bars_of_step(ladder, step, metric)}<dl>{pairs}</dl>{diffs}</article>"
    )


def _excerpt(excerpt: Excerpt) -> str:
    body = "\n".join(map(_line, excerpt.lines))
    opened = " open" if len(excerpt.lines) <= _OPEN_LINES else ""
    return (
        f"<details{opened}><summary>{escape(excerpt.heading)}</summary>"
        f'<pre class="diff" tabindex=0 role=region aria-label="Changed lines">{body}</pre></details>'
    )


def _line(line: str) -> str:
    sign = "plus" if line.startswith("+") else "minus" if line.startswith("-") else ""
    return f"<span class={sign}>{escape(line)}</span>" if sign else escape(line)


def _library(ladder: Ladder, metric: Metric) -> str:
    lines = [str(describe_library(row, metric)) for row in ladder.libraries]
    roof = format_roof(ladder, metric)
    return f"<section><h2>The lines to beat</h2>{_list([*lines, *([roof] if roof else [])])}</section>" if lines else ""


def _rest(ladder: Ladder, backend: str | None) -> str:
    """The ladders without a correct time, and the variants that are no rungs at this size."""
    empty = [of for of in ladder.ladders if backend in (None, of.backend) and not of.correct]
    lines = [
        f"{format_backend(of.backend)}: no rung has a correct time in this run "
        f"({', '.join(format_variant(step.variant) for step in of.steps)})"
        for of in empty
    ]
    lines += map(str, format_excluded(ladder.excluded))
    return f"<section><h2>No rungs at this size, or not measured</h2>{_list(lines)}</section>" if lines else ""


def _list(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def _paragraph(text: str) -> str:
    return f"<p class=warn>{escape(text)}</p>" if text else ""


def _command(ladder: Ladder) -> str:
    return shlex.join(["kernelviz", "ladder", ladder.problem.op, "--measure", *launch_options(ladder.problem)])
