"""A run as one self-contained HTML page: interactive charts, tables, quality, environment, method, and how to measure it again.

It opens from a disk and loads nothing from a network. The bundle of Plotly that the pages of the app use is inside, compressed.
"""

import gzip
import hashlib
import json
from base64 import b64encode
from collections.abc import Sequence
from functools import lru_cache
from html import escape
from importlib.resources import files
from typing import Any

import kernelviz
from kernelviz.core import Roof, Run
from kernelviz.formats.browser import bundle
from kernelviz.formats.export_format import Export
from kernelviz.formats.offline import charts, sections, selection, tables
from kernelviz.metrics import foreign_times
from kernelviz.metrics.chart_selection import charted_run
from kernelviz.metrics.run_with_roofs import run_with_roofs
from kernelviz.text import describe_selection
from kernelviz.text.samples import WHY_MEDIAN

MOST_BYTES = 6_000_000
"""What a mail system takes, with its own coding on top."""
_POINTS = (400, 200, 100, 50, 0)
"""Points that a series of samples keeps, from the most; 0: no samples. The first that keeps the page under MOST_BYTES."""


@lru_cache(maxsize=2)
def _part(name: str) -> str:
    return (files("kernelviz.formats.offline") / name).read_text("utf-8")


def page(run: Run, roofs: Sequence[Roof] | None = None) -> bytes:
    """The whole file, UTF-8, with shares of these roofs or of the run's own. Samples are thinned until it is under MOST_BYTES, or
    left out; the page says so.

    Of times that another tool took there is a table, and nothing to draw: no rate, no baseline, no roof.
    """
    roofs = run.environment.roofs if roofs is None else roofs
    compared = run_with_roofs(run, roofs)
    part = selection.part_of(compared)
    if foreign_times.alone(run):
        times = f"<section><h2>Every time</h2>{tables.other_times(part)}</section>"
        return _whole(
            run, roofs, f"{_paragraph(selection.describe_part(compared, part))}{times}\n{sections.failures(part)}"
        ).encode()
    view = charts.view_of(charted_run(part))
    everything, html = charts.data(view), b""
    for most in _POINTS:
        html = _page(run, compared, part, view, charts.thinned(everything, most), most).encode()
        if len(html) < MOST_BYTES:
            break
    return html


def _page(run: Run, compared: Run, part: Run, view: charts.View, chart_data: dict[str, Any], most: int) -> str:
    """`compared`: the run with the roofs of the page. `part`: the cases of it that the page shows. `view`: the part of these that
    the charts show."""
    data = json.dumps(chart_data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    library, its_hash = plotly()
    thinning = (
        f"At most {most} evenly chosen samples of each series are drawn; the document has all of them." if most else ""
    )
    few = (
        _paragraph(selection.describe_part(compared, part))
        + _paragraph(str(describe_selection(part) or ""))
        + _paragraph(selection.describe_sizes(len(view.problems), view.sizes))
    )
    main = f"""{sections.answers(part, view.headlines)}
<p id="without" class="without" hidden>This browser cannot draw the charts (<span id="why"></span>). Every figure is in the tables
below.</p><noscript><p class="without">Charts need JavaScript. Every figure is in the tables below.</p></noscript>
{few}
<div id="views" hidden>{_VIEWS.format(samples=thinning)}</div>
<section><h2>Every case</h2>{tables.cases(part, view.headlines)}</section>
{sections.failures(part)}
<section><h2>Every figure</h2>{tables.figures(part)}</section>
{tables.kernels(part)}"""
    data_of_charts = f"""{sections.legend(view.run)}
<script type="text/plain" id="data">{packed(data)}</script>
<script type="text/plain" id="plotly">{library}</script>"""
    credit = """; charts by
<a href="https://plotly.com/javascript/">plotly.js</a> (MIT licence, © Plotly, Inc.), which is inside the
file"""
    return _whole(run, compared.environment.roofs, main, data_of_charts, its_hash, credit)


def _whole(
    run: Run, roofs: Sequence[Roof], main: str, data_of_charts: str = "", library_hash: str = "", credit: str = ""
) -> str:
    """The page around what a run says of its cases."""
    script, style = bundle.chart_script() + _part("page.js"), bundle.chart_style() + _part("page.css")
    # Streams and styles only: no font or address can be loaded, whatever a text of the run says. Pictures can only be those
    # that the page itself makes, to save a chart as PNG.
    scripts = f"{allowed(script)} {library_hash}".strip()
    sources = f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data:"
    policy = f"{sources}; base-uri 'none'; form-action 'none'"
    title = escape(f"{run.title or run.plan.op} · kernelviz")
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
<meta name="generator" content="kernelviz {escape(kernelviz.__version__)}">
<title>{title}</title><style>{style}</style></head>
<body><header>{sections.head(run)}</header>
<main>{main}
<section><h2>Measure it again</h2>{sections.again(run)}</section>
<section><h2>Environment</h2>{sections.environment(run, roofs)}</section>
<section><h2>Method</h2>{sections.method(run)}</section></main>
<footer><h2>This file</h2>{sections.seal(run)}
<p class="how">Made by kernelviz {escape(kernelviz.__version__)}{credit}. It loads nothing from anywhere.</p></footer>
{data_of_charts}
<script type="module">{script}</script>
</body></html>
"""


def _paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>" if text else ""


def _choice(name: str, label: str) -> str:
    return f'<label>{label}<select id="{name}"></select></label>'


def _chart(name: str) -> str:
    return f'<div id="{name}" class="chart"></div>'


_VIEWS = f"""
<div class="choices">{_choice("l2", "L2")}{_choice("show", "Draw")}{_choice("against", "Against")}
{_choice("size", "At size")}</div>
<div class="two"><div><h2>By size</h2>{_chart("by_size")}</div>
<div><h2>Roofline at <span data-size></span></h2>{_chart("roofline")}</div></div>
<div class="two"><div><h2>Time and share of the roof at <span data-size></span></h2>{_chart("bars")}</div>
<div><h2>Each variant at this size</h2><ul id="lines" class="lines"></ul></div></div>
<section><h2>Every case under the measured roofs</h2>{_chart("all")}</section>
<section id="samples"><h2>Samples at <span data-size></span></h2><p class="how">{{samples}} {WHY_MEDIAN}</p>
<div class="two">{_chart("spread")}<div><div class="choices">{_choice("of", "In order")}</div>{_chart("order")}
<ul id="order_lines"></ul></div></div></section>
"""


def packed(text: str) -> str:
    """The text as base64 of gzip: letters, digits, ``+``, ``/`` and ``=``, so that no element can be closed by it."""
    return b64encode(gzip.compress(text.encode(), compresslevel=6, mtime=0)).decode()


def allowed(script: str) -> str:
    """How a content security policy names a script that may run.

    >>> allowed("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    return f"'sha256-{b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


@lru_cache(maxsize=1)
def plotly() -> tuple[str, str]:
    """Plotly's script packed, and how a policy names it."""
    return b64encode(bundle.gzipped()).decode(), allowed(bundle.script().decode())


EXPORT = Export(
    name="html",
    suffix=".html",
    media_type="text/html",
    encode=page,
    encode_with_roofs=page,
    label="web page (.html), opens offline",
)
