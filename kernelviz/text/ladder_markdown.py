"""A ladder as Markdown that reads like a work log: a table of all rungs, and a section for each one."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from kernelviz.metrics.ladder import BackendLadder, Ladder, Metric, Step
from kernelviz.metrics.ladder_changes import LadderChanges
from kernelviz.metrics.ladder_summary import summary_of, value_of
from kernelviz.metrics.source_changes import SourceChanges
from kernelviz.text.ladder import (
    HOW_TO_READ,
    describe_ages,
    describe_library,
    format_backend,
    format_excluded,
    format_gain,
    format_published,
    format_roof,
    format_value,
)
from kernelviz.text.ladder_changes import (
    describe_unread_code,
)
from kernelviz.text.ladder_facts import facts_of_step
from kernelviz.text.ladder_summary import describe_summary
from kernelviz.text.results import format_variant
from kernelviz.text.roofs import format_share
from kernelviz.text.sizes import format_problem

MOST_DIFF_LINES = 400
"""Lines of a diff that a section shows."""


def markdown(
    ladder: Ladder,
    changes: LadderChanges,
    *,
    metric: Metric | None = None,
    backend: str | None = None,
    diffs: bool = True,
) -> str:
    """The whole ladder, or that of one backend. Names are code. `diffs`: with the lines of the source that changed."""
    by = metric or ladder.metric
    chosen = ladder.with_times(backend)
    run = ladder.run
    where = f"{run.environment.device.name}, {run.created_at[:10]}"
    parts = [
        f"# Ladder of {_plain(format_problem(ladder.problem))}",
        f"Measured on {_plain(where)}, run {code(run.id)}.",
    ]
    parts += [_plain(describe_summary(summary_of(ladder, of), by)) for of in chosen]
    if not chosen:
        parts.append("No rung has a correct time yet.")
    lines = [describe_library(row, by) for row in ladder.libraries]
    roof = format_roof(ladder, by)
    parts.append("\n".join(f"- {_plain(line)}" for line in [*lines, *([roof] if roof else [])]))
    unread = _plain(describe_unread_code(changes, ladder.problem))
    parts += [unread] if unread else []
    for of in chosen:
        parts += [f"## {format_backend(of.backend)}", _table(of, by)]
        parts += [
            _plain(describe_ages(of)),
            *(_section(ladder, of, step, changes, by, diffs=diffs) for step in of.steps),
        ]
    rest = [of for of in ladder.ladders if backend in (None, of.backend) and not of.correct]
    for of in rest:
        names = ", ".join(code(step.variant) for step in of.steps)
        parts.append(f"{format_backend(of.backend)}: no rung has a correct time in this run ({names}).")
    excluded = format_excluded(ladder.excluded)
    if excluded:
        parts.append("## No rungs at this size\n\n" + "\n".join(f"- {_plain(line)}" for line in excluded))
    parts.append("## How to read this\n\n" + "\n".join(f"- {line}" for line in HOW_TO_READ))
    return "\n\n".join(part for part in parts if part)


def code(name: str) -> str:
    """A name as code, which Markdown does not read further.

    >>> code("cuda_naive"), code("a`b")
    ('`cuda_naive`', '`` a`b ``')
    """
    return f"`` {name} ``" if "`" in name else f"`{name}`"


def _table(of: BackendLadder, metric: Metric) -> str:
    heading = "| rung | variant | value | of the roof | gain | over | published |"
    return "\n".join([heading, "|--:|---|--:|--:|---|---|---|", *(_row(step, metric) for step in of.steps)])


def _row(step: Step, metric: Metric) -> str:
    value = value_of(step.row, metric) if step.correct else None
    share = None if step.row is None or not step.correct else step.row.efficiency
    cells = (
        str(step.number),
        code(step.variant),
        str(format_value(value, metric)) if value is not None else "–",
        "–" if share is None else format_share(share),
        _plain(format_gain(step)),
        code(step.over.name) if step.over is not None and step.gain is not None else "–",
        _plain(format_published(step) or "–"),
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _section(
    ladder: Ladder, of: BackendLadder, step: Step, changes: LadderChanges, metric: Metric, *, diffs: bool
) -> str:
    source = changes.sources.get(step.variant)
    lines = [f"- {label}: {_plain(text)}" for label, text in facts_of_step(ladder, of, step, changes, metric)]
    parts = [f"### {step.number}. {_plain(format_variant(step.variant))}", _plain(step.declared.idea), "\n".join(lines)]
    if diffs and source is not None:
        parts += map(_fenced, excerpts(source))
    return "\n\n".join(parts)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of source that show what changed in a step, cut after MOST_DIFF_LINES. `of_diff`: they are a unified diff, whose
    first two lines name the files; otherwise they are numbered lines of one file."""

    heading: str
    lines: tuple[str, ...]
    of_diff: bool

    @property
    def language(self) -> str:
        """The language by which the lines are coloured."""
        return "diff" if self.of_diff else "cpp"


def excerpts(changes: SourceChanges) -> list[Excerpt]:
    """The diffs of a step; without a diff, the lines that read the macros which have changed."""
    diffs = [
        Excerpt(_changed_lines(*(change.kernels or (change.before, change.after))), _cut(change.lines), of_diff=True)
        for change in changes.files
        if change.lines
    ]
    if diffs:
        return diffs
    values = ", ".join(f"{value.name} ({value.before or 'none'} → {value.after or 'none'})" for value in changes.macros)
    read = [
        (file, [f"{line.number:>5}  {line.text}" for line in lines])
        for file, lines in groupby(changes.macro_lines, key=lambda line: line.file)
    ]
    return [Excerpt(f"{file}: the lines that read {values}", _cut(lines), of_diff=False) for file, lines in read]


def _changed_lines(before: str, after: str) -> str:
    return f"Changed lines: {before or 'nothing'} → {after or 'nothing'}"


def _cut(lines: Sequence[str]) -> tuple[str, ...]:
    more = len(lines) - MOST_DIFF_LINES
    return (*lines[:MOST_DIFF_LINES], *([f"… {more:,} more lines"] if more > 0 else []))


def _fenced(excerpt: Excerpt) -> str:
    """An excerpt as a fenced block, which nothing in it can close; a diff names its files itself."""
    fence = "`" * (3 + max((len(line) - len(line.lstrip("`")) for line in excerpt.lines), default=0))
    block = "\n".join([f"{fence}{excerpt.language}", *excerpt.lines, fence])
    return block if excerpt.of_diff else f"{_plain(excerpt.heading)}\n\n{block}"


_SPECIAL = re.compile(r"([\\`*\[\]<>$~|&]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")
_MARK = re.compile(r"^(\d*)([-+=#.)])")
"""What makes a list or a heading at the beginning of a line."""


def _plain(text: object) -> str:
    r"""Text on one line that Markdown and HTML do not interpret.

    >>> print(_plain("a_b <b>x</b> [y](z) _c_"), _plain("# 1"), _plain("1. x"))
    a_b \<b\>x\</b\> \[y\](z) \_c\_ \# 1 1\. x
    """
    return _MARK.sub(r"\1\\\2", _SPECIAL.sub(r"\\\1", " ".join(str(text).split())))
