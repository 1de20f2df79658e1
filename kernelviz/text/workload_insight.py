"""The sentence above the chart of a workload: which variant is best, where, and by how much."""

from collections.abc import Sequence

from kernelviz.core import units
from kernelviz.core.workload import WorkloadRun
from kernelviz.metrics.workload_headline import WorkloadHeadline, headline_of
from kernelviz.metrics.workloads import WorkloadRow, rows
from kernelviz.text.text import Text
from kernelviz.text.workload_gains import format_gain
from kernelviz.text.workloads import format_estimate, format_value, format_where


def describe_insight(run: WorkloadRun) -> Text:
    """Which variant is best at most points without a planted condition, by how much, and at how many of them."""
    listed = rows(run)
    usable = [row for row in listed if row.usable]
    if not usable:
        without = _without_value(listed)
        return Text(f"No case has a value.{without}" if without else "No case has a result yet.")
    of_run = headline_of(run, usable)
    sentence = f"{_best_sentence(run, of_run)}{_planted(run, of_run)}{_without_value(listed)}"
    only = any(row.result is not None and row.result.mechanics_only for row in usable)
    return Text(f"Mechanics only (on a processor): {sentence}" if only else str(sentence))


def _without_value(listed: Sequence[WorkloadRow]) -> str:
    """How many cases were tried and failed, and how many were not tried because the variant does not take such values."""
    results = [row.result for row in listed if row.result is not None]
    failed = sum(result.failed for result in results)
    untried = sum(not (result.failure is None or result.failed or result.given_up) for result in results)
    texts = (
        f" {units.counted(failed, 'case')} failed." if failed else "",
        f" Not supported: {units.counted(untried, 'case')}." if untried else "",
    )
    return "".join(texts)


def _planted(run: WorkloadRun, of_run: WorkloadHeadline) -> str:
    """How many points are not counted, because something was planted there."""
    if not of_run.planted:
        return ""
    titles = " or ".join(axis.title.lower() for axis in run.declared.axes if axis.planted is True)
    verb = "is" if of_run.planted == 1 else "are"
    return f" {units.counted(of_run.planted, 'point')} with a {titles} {verb} not counted."


def _best_sentence(run: WorkloadRun, of_run: WorkloadHeadline) -> str:
    figure, baseline = run.declared.headline, run.plan.baseline
    if of_run.best is None:
        return _nothing_better(run, of_run.rows)
    row, count = of_run.best, len(of_run.points)
    value, gain = format_value(row.value(figure.name), figure.unit), format_gain(row.gains[figure.name])
    where = format_where(run, row.case.values)
    better = f"better than {baseline} by {gain}."
    if 2 * of_run.wins[row.case.variant] > count:
        more = f" It is the best variant at {of_run.wins[row.case.variant]} of {count} points." if count > 1 else ""
        return f"{row.case.variant} is best in {figure.title}{where}: {value}, {better}{more}"
    (first, most), *remaining = of_run.wins.items()
    rest = [f"{variant} at {wins}" for variant, wins in remaining]
    unbeaten = f"o variant is better than {baseline} in {figure.title} beyond the noise floor at {of_run.unbeaten}"
    if of_run.unbeaten >= most:
        said = f"N{unbeaten} of {count} points; {', '.join([f'{first} is best at {most}', *rest])}."
    else:
        said = ", ".join([f"{first} is best in {figure.title} at {most} of {count} points", *rest])
        said += f"; n{unbeaten}." if of_run.unbeaten else "."
    return f"{said} {row.case.variant} has {value}{where}, {better}"


def _nothing_better(run: WorkloadRun, listed: Sequence[WorkloadRow]) -> str:
    figure, baseline = run.declared.headline, run.plan.baseline
    base = next((row for row in reversed(listed) if row.is_baseline), listed[-1])
    compared = [row for row in listed if not row.is_baseline]
    value, where = format_value(base.value(figure.name), figure.unit), format_where(run, base.case.values)
    if not compared:
        return f"{base.case.variant}: {figure.title} {value}{where}."
    without = [row for row in compared if figure.name in row.gains and row.gains[figure.name].ratio.low is None]
    if without:
        row = max(without, key=lambda one: one.gains[figure.name].ratio.estimate)
        return (
            f"There are too few samples for a verdict on {figure.title}. {row.case.variant} has "
            f"{format_estimate(row.value(figure.name), figure.unit)}, {format_gain(row.gains[figure.name])} as good as "
            f"{baseline}{format_where(run, row.case.values)}, without an interval."
        )
    return (
        f"No variant is better than {baseline} in {figure.title} beyond the noise floor; {base.case.variant} has "
        f"{value}{where}."
    )
