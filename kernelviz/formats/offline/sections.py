"""The sections of the offline page as HTML. Every text of the run is escaped."""

import re
from collections.abc import Sequence
from html import escape

from kernelviz.core import Roof, Run, units
from kernelviz.core.command import commands, unsaid
from kernelviz.formats.document import digest
from kernelviz.metrics import foreign_times
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.rows import rows
from kernelviz.metrics.summary import summary
from kernelviz.metrics.sweep import telling_axes
from kernelviz.ops import catalogue
from kernelviz.plots.marker_images import svg
from kernelviz.plots.variant_styles import styles_of
from kernelviz.text import (
    cells,
    describe_failure,
    format_level,
    format_roof_name,
    format_roof_value,
    format_sizes,
    format_variant,
)
from kernelviz.text import method as method_text
from kernelviz.text.failures import format_stage, has_description
from kernelviz.text.report import describe_later_roofs
from kernelviz.text.tiles import tiles
from kernelviz.text.times import FIGURES


def head(run: Run) -> str:
    """The title, the device and the date of the run, a warning if results are missing, and the note of its author."""
    first = run.plan.problems[0]
    what = ", ".join(filter(None, (run.plan.op, first.dtype, first.compute, first.direction)))
    facts = [
        run.environment.device.name,
        f"measured {when(run.created_at)} on {run.environment.host}",
        *([] if foreign_times.alone(run) else [f"baseline {format_variant(run.plan.baseline)}"]),
        *([f"{first.data.replace('_', ' ')} data"] if first.data not in (None, "normal") else []),
        *filter(None, [method_text.format_load(run.method)]),
        *(["untrusted variants, judged"] if run.method.untrusted else []),
    ]
    done, cases = sum(not r.given_up for r in run.results), len(run.plan.cases())
    lacking = (
        f"<p class=warn>⚠ {escape(run.status)}: {done} of {cases} cases have a result.</p>" if done < cases else ""
    )
    title = f"<p class=title>{escape(run.title)}</p>" if run.title else ""
    note = f"<p class=note>{escape(run.note)}</p>" if run.note else ""
    return f"<h1>{escape(what)}</h1>{title}<p class=facts>{escape(' · '.join(facts))}</p>{lacking}{note}"


def when(stamp: str) -> str:
    """A stored date in its stored time zone, because the time zone of the reader is unknown."""
    if not stamp:
        return "at an unknown time"
    return stamp[:16].replace("T", " ") + (" UTC" if stamp.endswith(("Z", "+00:00")) else stamp[19:])


def answers(run: Run, headlines: Sequence[Headline]) -> str:
    """The tiles with the main results, one set for each headline."""
    boxes = {
        headline: "".join(
            f'<div class=tile title="{escape(t.how)}"><dt>{escape(t.label)}</dt>'
            f"<dd>{escape(t.value)}<small>{escape(t.whole_basis)}</small></dd></div>"
            for t in tiles(summary(rows(run, run.environment.roofs, headline)), run.plan, headline)
        )
        for headline in headlines
    }
    return "".join(f"<dl class=tiles data-l2={headline}>{inside}</dl>" for headline, inside in boxes.items())


def legend(run: Run) -> str:
    """The marker of each variant. The script copies them into its lists."""
    styles = styles_of(run.plan.op, run.plan.variants)
    marks = (f"<span data-mark={i}>{svg(styles[v])}</span>" for i, v in enumerate(run.plan.variants))
    return f"<template id=marks>{''.join(marks)}</template>"


def failures(run: Run) -> str:
    """All failed cases with their messages. Cases with the same failure are grouped."""
    axes = telling_axes(run.plan.problems)
    groups = cells.failures(rows(run, ()))
    if not groups:
        return ""
    entries = (
        f"<li><b>✕ {escape(format_variant(v))}</b> · {escape(str(format_stage(failure)))} · "
        f"{escape(', '.join(format_sizes(row.result.problem, axes) for row in group))}"
        f"<pre tabindex=0>{escape(str(describe_failure(failure)) if has_description(failure) else 'no message')}</pre></li>"
        for (v, failure), group in groups.items()
    )
    return f"<section><h2>Failures</h2><ul class=failures>{''.join(entries)}</ul></section>"


def again(run: Run) -> str:
    """The commands that measure the same plan, and what they do not contain."""
    if not run.method.figures:
        return "<p>Another tool measured this run, so there is no command of kernelviz that measures it again.</p>"
    notes = [unsaid(run.method)]
    if run.plan.plugins:
        notes.append(f"the files for --with are not part of this page: {', '.join(run.plan.plugins)}")
    op = catalogue().get(run.plan.op)
    known = {v.name for v in op.variants} if op else set()
    foreign = [v for v in run.plan.variants if v not in known]
    if foreign and not run.plan.plugins:
        notes.append(
            f"these variants are not part of kernelviz; give the file that defines them with --with: {', '.join(foreign)}"
        )
    said = "".join(f"<p class=warn>⚠ {escape(n)}</p>" for n in notes if n)
    lines = escape("\n".join(commands(run.plan, run.method)))
    return f"<pre id=command tabindex=0>{lines}</pre><button id=copy hidden>Copy</button>{said}"


def environment(run: Run, roofs: Sequence[Roof]) -> str:
    """The machine, its software, and the roofs with which the run is compared."""
    here, device = run.environment, run.environment.device
    facts: list[tuple[str, object]] = [
        ("device", device.name),
        ("its id", device.uuid),
        ("memory", units.size_bytes(device.memory_bytes)),
        ("last-level cache", units.size_bytes(device.last_level_cache_bytes)),
        ("multiprocessors", device.multiprocessors) if device.kind == "cuda" else ("threads", here.threads),
        *(
            [
                ("compute capability", ".".join(map(str, device.compute_capability or ())) or None),
                ("driver", device.driver),
                ("CUDA of the driver", device.driver_cuda),
                ("tracer", here.tracer),
            ]
            if device.kind == "cuda"
            else []
        ),
        ("host", here.host),
        ("platform", here.platform),
        ("Python", here.python),
        ("kernelviz", here.kernelviz),
        *here.versions.items(),
    ]
    return f"{_facts(facts)}<h3>Roofs</h3>{_roofs(run, roofs)}"


def _facts(facts: Sequence[tuple[str, object]]) -> str:
    pairs = (f"<div><dt>{escape(n)}</dt><dd>{escape('unknown' if v is None else str(v))}</dd></div>" for n, v in facts)
    return f"<dl class=pairs>{''.join(pairs)}</dl>"


def _roofs(run: Run, roofs: Sequence[Roof]) -> str:
    if not roofs:
        return "<p>No roof of this device is known, so shares of the roof are unknown.</p>"
    later = "".join(f"<p>{escape(str(line))}</p>" for line in describe_later_roofs(run, roofs))
    lines = "".join(
        f"<tr><td>{escape(format_roof_name(r))}<td class=n>{escape(format_roof_value(r))}<td class=n>{escape(_interval(r))}"
        f"<td>{escape(r.how or 'unknown')}<td>{escape(when(r.measured_at) if r.measured_at else 'unknown')}</tr>"
        for r in roofs
    )
    return (
        f"{later}<details><summary>{len(roofs)} roofs, measured on this device</summary>"
        "<div class=scroll tabindex=0 role=region aria-label=Roofs><table><thead>"
        "<tr><th>roof<th>value<th>95 % interval<th>how<th>measured</tr>"
        f"</thead><tbody>{lines}</tbody></table></div></details>"
    )


def _interval(roof: Roof) -> str:
    middle = roof.rate_flop_per_s or roof.bandwidth_bytes_per_s or roof.time_s
    if roof.low is None or roof.high is None or not middle:
        return "unknown"
    return f"±{units.width((roof.high - roof.low) / 2 / middle)}"


def method(run: Run) -> str:
    """How the times were measured, what each figure means, how verdicts are made, and what the levels of quality mean."""
    settings = run.method
    if not settings.figures:
        return (
            "<p>Another tool measured this run by its own method. Facts that its file does not contain are unknown.</p>"
        )
    facts: list[tuple[str, object]] = [
        ("load", method_text.format_load(settings) or settings.clock),
        ("budget", f"{settings.budget_s:g} s of device time per case"),
        ("stops at", f"±{units.width(settings.half_width)} of the time"),
        ("and at", f"±{units.width(settings.ratio_half_width)} of a ratio"),
        ("fills checked", settings.seeds),
        ("figures", ", ".join(settings.figures)),
    ]
    questions = "".join(f"<li><b>{escape(f.name)}</b> {escape(f.question)}</li>" for f in FIGURES)
    levels = "".join(
        f"<li><b>{escape(str(format_level(level)))}</b> {escape(rule)}</li>"
        for level, rule in method_text.LEVEL_RULES.items()
    )
    parts = "".join(f"<li><b>{escape(n)}</b> {escape(text)}</li>" for n, text in method_text.PARTS.items())
    return (
        f"{_facts(facts)}{marked(method_text.COLD[run.environment.device.kind])}"
        f"<h3>Figures</h3><ul>{questions}</ul><h3>Verdicts</h3>{marked(method_text.VERDICT)}"
        f"<h3>Share of the roof</h3>{marked(method_text.ROOFS)}"
        f"<h3 id=trust>Measurement quality</h3><ul>{levels}</ul><ul>{parts}</ul>"
    )


def seal(run: Run) -> str:
    """The run's digest and what it covers."""
    return (
        f"<p>id <code>{escape(run.id)}</code> · digest <code id=digest>{digest(run)}</code>: SHA-256 over plan, environment, "
        "method and results. Runs with equal digests have equal facts; title and note are not part of the digest.</p>"
    )


def marked(text: str) -> str:
    """The Markdown of this project's own texts as HTML: paragraphs, lists, bold and italics.

    >>> marked("**A** <b>\\n\\n- one\\n  and more\\n- *two*")
    '<p><b>A</b> &lt;b&gt;</p><ul><li>one and more</li><li><i>two</i></li></ul>'
    """
    blocks = []
    for block in re.split(r"\n\s*\n", text.strip()):
        lines = escape(block, quote=False)
        lines = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", lines, flags=re.DOTALL)
        lines = re.sub(r"\*(.+?)\*", r"<i>\1</i>", lines, flags=re.DOTALL)
        if lines.startswith("- "):
            entries = (" ".join(entry.split()) for entry in re.split(r"^- ", lines, flags=re.MULTILINE)[1:])
            blocks.append(f"<ul>{''.join(f'<li>{entry}</li>' for entry in entries)}</ul>")
        else:
            blocks.append(f"<p>{' '.join(lines.split())}</p>")
    return "".join(blocks)
