"""A run told in words, line by line: what a terminal prints and what a Markdown file holds."""

from collections import Counter
from collections.abc import Sequence

from kernelviz.core import Problem, Roof, Run, units
from kernelviz.core.configuration import is_configuration
from kernelviz.core.units import typed_size
from kernelviz.metrics import foreign_times
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.quality import LEVELS, Part, PartName, Quality, quality
from kernelviz.metrics.rows import Row
from kernelviz.metrics.summary import Summary
from kernelviz.metrics.sweep import varying_axes
from kernelviz.text.cells import failures as failed_cases
from kernelviz.text.configuration import format_configuration
from kernelviz.text.failures import format_failure
from kernelviz.text.quality import describe_part, describe_quality, format_level


def heading(run: Run, headline: Headline = "cold") -> str:
    """Op, dtype, sizes that stayed the same, and the device."""
    problem = run.plan.problems[0]
    varying = varying_axes(run.plan.problems)
    fixed = typed_sizes(problem, [a for a in problem.sizes if a not in varying])
    parts = [
        problem.op,
        "number format unknown" if problem.dtype == "unknown" else problem.precision,
        problem.direction,
        f"{problem.data} data" if problem.data else "",
        fixed,
    ]
    caches = "" if foreign_times.alone(run) else f", {headline} L2"
    return f"{' · '.join(w for w in parts if w)} on {run.environment.device.name}{caches}"


def failures(rows: Sequence[Row]) -> list[str]:
    """Each reason once, with the variant and how many of its cases it explains."""
    return [
        f"✕ {variant} {format_failure(failure)}" + (f" ({len(group)} sizes)" if len(group) > 1 else "")
        for (variant, failure), group in failed_cases(rows).items()
    ]


def doubts(rows: Sequence[Row], run: Run, headline: Headline) -> list[str]:
    """Why times are not good: a line a level, each reason once, with how many cases it is true of. Wrong ones are told as
    failures."""
    timed = [row for row in rows if row.failure is None]
    known = [q for row in timed if (q := quality(row.result, headline, run.method.clock)) is not None]
    lines = []
    for level in reversed(LEVELS[1:]):
        alike = [q for q in known if q.level == level]
        if alike:
            reasons = "; ".join(_reasons(alike))
            lines.append(f"{format_level(level)} ({len(alike)} of {len(timed)} cases): {reasons}")
    return lines


def _reasons(alike: Sequence[Quality]) -> list[str]:
    """The reasons of times of one level, part by part: a part that says something else each time is told twice at most."""
    parts: dict[PartName, list[Part]] = {}
    for one in alike:
        for part in one.reasons:
            parts.setdefault(part.name, []).append(part)
    said = []
    for group in parts.values():
        texts = Counter(str(describe_part(part)) for part in group)
        most = [text for text, _ in texts.most_common(2)]
        count = "" if len(group) == len(alike) else f" ({len(group)})"
        said.append(" / ".join(most) + (" / …" if len(texts) > len(most) else "") + count)
    return said


def conclusion(summary: Summary | None, run: Run, roofs: Sequence[Roof]) -> str:
    """The winner in one sentence, and what is missing for a share of the roof."""
    if summary is None:
        return "No case has a correct time."
    similar = f" (within 0.5 % of it: {', '.join(summary.alike)})" if summary.alike else ""
    parts = [f"Fastest: {summary.fastest}{similar}"]
    if summary.speed_up is not None and summary.fastest != run.plan.baseline:
        over = f" (geometric mean of {summary.speed_ups} sizes)" if summary.speed_ups > 1 else ""
        parts.append(f"{summary.speed_up:.2f}× {run.plan.baseline}{over}")
    if summary.efficiency is not None:
        parts.append(f"{units.percent(summary.efficiency)} of the measured roof")
    text = ", ".join(parts) + "."
    return text if roofs else f"{text} Roofs are not calibrated: `kernelviz device --calibrate` measures them."


def configurations(rows: Sequence[Row], run: Run) -> list[str]:
    """A line for each configuration with which a variant was measured, with the sizes; none for names that say theirs."""
    varying = varying_axes(run.plan.problems)
    alike: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        configuration = format_configuration(row.result)
        if configuration and not is_configuration(row.result.variant):
            alike.setdefault((row.result.variant, configuration), []).append(typed_sizes(row.result.problem, varying))
    return [
        f"{variant}, {configuration}" + (f" ({_few(sizes)})" if varying else "")
        for (variant, configuration), sizes in alike.items()
    ]


def _few(sizes: Sequence[str]) -> str:
    """
    >>> _few(["n=1", "n=2"]), _few(["n=1"] * 9)
    ('n=1; n=2', 'n=1; n=1; n=1; and 6 more sizes')
    """
    return "; ".join(sizes) if len(sizes) <= 4 else f"{'; '.join(sizes[:3])}; and {len(sizes) - 3} more sizes"


def typed_sizes(problem: Problem, axes: Sequence[str] | None = None) -> str:
    """The sizes (of some axes) as one types them.

    >>> typed_sizes(Problem(op="rmsnorm", sizes={"m": 4096, "n": 1000}, dtype="fp32"))
    'm=2^12 n=1000'
    """
    return " ".join(f"{a}={typed_size(problem.sizes[a])}" for a in (problem.sizes if axes is None else axes))


def quality_lines(rows: Sequence[Row], run: Run, headline: Headline) -> list[str]:
    """The whole line on the quality of each time, behind its sizes and variant."""
    varying = varying_axes(run.plan.problems)
    return [
        " ".join(
            (
                *(f"{a}={typed_size(row.result.problem.sizes[a])}" for a in varying),
                row.result.variant,
                str(describe_quality(q)),
            )
        )
        for row in rows
        if (q := quality(row.result, headline, run.method.clock)) is not None
    ]
