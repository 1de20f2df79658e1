"""A run in text, line by line, the same in a terminal and in a Markdown file."""

import itertools
from collections import Counter, defaultdict
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
from kernelviz.metrics.tuning import is_tuning, tried
from kernelviz.text.above_roof import describe_above_roofs
from kernelviz.text.caches import format_caches
from kernelviz.text.cells import failures as failed_cases
from kernelviz.text.failures import format_failure
from kernelviz.text.method import format_load
from kernelviz.text.quality import describe_part, describe_quality, format_level
from kernelviz.text.results import format_configuration
from kernelviz.text.text import Text, join
from kernelviz.text.tuning import describe_best_configuration
from kernelviz.text.winners import describe_doubts, describe_mean_time, describe_most_wins, format_most_wins


def heading(run: Run, headline: Headline = "cold") -> Text:
    """Op, number format, the sizes that all problems share, and the device."""
    problem = run.plan.problems[0]
    varying = varying_axes(run.plan.problems)
    parts = (
        problem.op,
        "number format unknown" if problem.dtype == "unknown" else problem.precision,
        problem.direction or "",
        f"{problem.data} data" if problem.data else "",
        format_load(run.method),
        "untrusted variants, judged" if run.method.untrusted else "",
        typed_sizes(problem, [a for a in problem.sizes if a not in varying]),
    )
    caches = "" if foreign_times.alone(run) else f", {headline} {format_caches(run.environment.device)}"
    return join(" · ", parts) + f" on {run.environment.device.name}{caches}"


def failures(rows: Sequence[Row]) -> list[Text]:
    """Each reason once, with the variant and the number of cases that failed for it."""
    return [
        Text(f"✕ {variant} {format_failure(failure)}" + (f" ({len(group)} sizes)" if len(group) > 1 else ""))
        for (variant, failure), group in failed_cases(rows).items()
    ]


def doubts(rows: Sequence[Row], run: Run, headline: Headline) -> list[Text]:
    """Why the quality of times is not good: one line for each level, with each reason once and its number of cases. Wrong
    results are listed by `failures`."""
    timed = [row for row in rows if row.failure is None]
    known = [q for row in timed if (q := quality(row.result, headline, run.method.clock)) is not None]
    by_level = {level: [q for q in known if q.level == level] for level in reversed(LEVELS[1:])}
    return [
        Text(f"{format_level(level)} ({len(alike)} of {len(timed)} cases): {'; '.join(_reasons(alike))}")
        for level, alike in by_level.items()
        if alike
    ]


def above_roofs(rows: Sequence[Row]) -> list[Text]:
    """Why shares of the roof are above 100 %."""
    return [Text(line) for line in describe_above_roofs([row.above_roof for row in rows if row.above_roof is not None])]


def _reasons(alike: Sequence[Quality]) -> list[str]:
    """The reasons of times of one level, part by part. Of the different texts of one part, the two most frequent are listed."""
    parts: dict[PartName, list[Part]] = defaultdict(list)
    for part in itertools.chain.from_iterable(one.reasons for one in alike):
        parts[part.name].append(part)
    reasons = []
    for group in parts.values():
        texts = Counter(str(describe_part(part)) for part in group)
        most = " / ".join(text for text, _ in texts.most_common(2))
        count = "" if len(group) == len(alike) else f" ({len(group)})"
        reasons.append(f"{most}{' / …' if len(texts) > 2 else ''}{count}")
    return reasons


def describe_later_roofs(run: Run, roofs: Sequence[Roof]) -> list[Text]:
    """That roofs were measured after the run, all or some, and when the last of them was; nothing if none is known to be."""
    later = [roof.measured_at for roof in roofs if run.created_at and roof.measured_at > run.created_at]
    if not later:
        return []
    which = "The roofs" if len(later) == len(roofs) else f"{len(later)} of {len(roofs)} roofs"
    return [Text(f"{which} were measured after the run, the last on {max(later)[:16].replace('T', ' ')} UTC.")]


def conclusion(summary: Summary | None, run: Run, roofs: Sequence[Roof]) -> Text:
    """The best variant overall, where it is not the fastest, the one that wins the most sizes, and what is missing for a share of
    the roof."""
    if summary is None:
        return Text("No case has a correct time.")
    if is_tuning(run):
        return describe_best_configuration(tried(run))
    several = len(run.plan.problems) > 1
    if several:
        parts = [f"Best overall: {summary.fastest} ({describe_mean_time(summary, str)})"]
    else:
        doubt = "" if summary.wins_of_best.won else " (tied)" if summary.wins_of_best.tied else " (unclear)"
        parts = [f"Fastest: {summary.fastest}{doubt}"]
    if summary.speed_up is not None and summary.fastest != run.plan.baseline:
        over = f" (geometric mean of {summary.speed_ups} sizes)" if summary.speed_ups > 1 else ""
        parts.append(f"{units.factor(summary.speed_up)}× {run.plan.baseline}{over}")
    if summary.efficiency is not None:
        parts.append(f"{units.percent(summary.efficiency)} of the measured roof")
    calibrate = "" if roofs else " Roofs are not calibrated: `kernelviz device --calibrate` measures them."
    doubts = describe_doubts(summary) if several else ""
    but = f" {doubts}" if doubts else ""
    wins = f" Most wins: {format_most_wins(summary, str)} ({describe_most_wins(summary)})." if several else ""
    return join(", ", parts) + f".{but}{wins}{calibrate}"


def configurations(rows: Sequence[Row], run: Run) -> list[Text]:
    """A line for each configuration of a variant, with its sizes. Not for variants whose name contains the configuration."""
    varying = varying_axes(run.plan.problems)
    alike: dict[tuple[str, str], list[Text]] = defaultdict(list)
    for row in rows:
        if row.result.configuration and not is_configuration(row.result.variant):
            configuration = str(format_configuration(row.result))
            alike[row.result.variant, configuration].append(typed_sizes(row.result.problem, varying))
    return [
        Text(f"{variant}, {configuration}" + (f" ({_few(sizes)})" if varying else ""))
        for (variant, configuration), sizes in alike.items()
    ]


def _few(sizes: Sequence[str | Text]) -> Text:
    """
    >>> str(_few(["n=1", "n=2"])), str(_few(["n=1"] * 9))
    ('n=1; n=2', 'n=1; n=1; n=1; and 6 more sizes')
    """
    return join("; ", sizes if len(sizes) <= 4 else [*sizes[:3], f"and {len(sizes) - 3} more sizes"])


def typed_sizes(problem: Problem, axes: Sequence[str] | None = None) -> Text:
    """The sizes of all axes, or of `axes`, as a user types them.

    >>> str(typed_sizes(Problem(op="rmsnorm", sizes={"m": 4096, "n": 1000}, dtype="fp32")))
    'm=2^12 n=1000'
    """
    return join(" ", (f"{a}={typed_size(problem.sizes[a])}" for a in (problem.sizes if axes is None else axes)))


def quality_lines(rows: Sequence[Row], run: Run, headline: Headline) -> list[Text]:
    """Sizes, variant and measurement quality of each time."""
    varying = varying_axes(run.plan.problems)
    return [
        join(" ", (typed_sizes(row.result.problem, varying), row.result.variant, describe_quality(q)))
        for row in rows
        if (q := quality(row.result, headline, run.method.clock)) is not None
    ]
