"""The ladder of an op in text: what each rung gains here and as published, what changed, and one sentence about the whole."""

from collections.abc import Callable, Mapping, Sequence
from typing import assert_never

from kernelviz.core import units
from kernelviz.core.backends import BACKENDS
from kernelviz.core.machine_code import Technique
from kernelviz.core.problem import Problem
from kernelviz.core.run import Status
from kernelviz.metrics.comparison import Pair
from kernelviz.metrics.ladder import (
    BackendLadder,
    DeclaredVariant,
    Ladder,
    Metric,
    NotPlanned,
    NotYet,
    PublishedStep,
    PublishedValue,
    RunEnded,
    Step,
)
from kernelviz.metrics.ladder_summary import SMALL, LadderSummary, roof_value, value_of, wrong_value_of
from kernelviz.metrics.quality import quality
from kernelviz.metrics.rows import Row
from kernelviz.metrics.statistics import Interval
from kernelviz.text.failures import describe_failure, describe_reason, format_failure, format_stage, has_description
from kernelviz.text.machine_code import TECHNIQUE_NAMES
from kernelviz.text.quality import format_badge
from kernelviz.text.results import format_variant
from kernelviz.text.roofs import format_share
from kernelviz.text.sizes import format_problem
from kernelviz.text.text import Text, join, on_one_line, sentence_case
from kernelviz.text.verdicts import describe_verdict_reason

Naming = Callable[[str], str]
"""How the name of a variant is written: `format_variant` on pages, as code in Markdown."""
METRICS: dict[Metric, str] = {"time": "time", "bandwidth": "bandwidth", "rate": "arithmetic rate"}
HOW_TO_READ = (
    "A rung is a variant of the op; the rungs of a backend are in the order of the catalogue, from the plainest to the best.",
    "The gain of a rung is the time of the last correct rung before it divided by its own time, in the rounds that measured "
    "both, with the 95 % interval. “Faster”, “slower” and “tie” are verdicts beyond, or within, the noise floor; where the "
    "interval is partly inside the noise floor, the step is unclear.",
    "A rung with a wrong result gives no gain, and the next one is compared with the last correct one. The same holds for a rung "
    "that was not measured.",
    "A published gain is what a source reports of the same idea, often on another GPU and with other kernels. It is not expected "
    "to be the same here.",
    "Libraries (torch, torch.compile, cuDNN, CUTLASS, Liger) are no rungs. They are the lines to beat.",
)
"""How the page and the file are read, in sentences."""
_ENDED: Mapping[Status, str] = {
    "cancelled": "the run was cancelled before it",
    "interrupted": "the run was interrupted before it",
}


def format_backend(backend: str) -> str:
    """The name of a ladder's backend.

    >>> format_backend("cuda"), format_backend("mine")
    ('CUDA C++', 'mine')
    """
    return BACKENDS[backend].title if backend in BACKENDS else backend


def format_value(value: Interval | None, metric: Metric) -> Text:
    """A value with half of its interval.

    >>> print(format_value(Interval(790.08e12, 786.6e12, 793.4e12), "rate"))
    790.1 TFLOP/s ± 0.4 %
    >>> print(format_value(Interval(320.0e-6, None, None), "time"), "|", format_value(None, "rate"))
    320.0 µs | unknown
    """
    if value is None:
        return Text("unknown")
    half = value.half_width
    digits = units.digits_of(half)
    width = "" if half is None else f" ± {units.width(half)}"
    return Text(f"{_number(value.estimate, metric, digits)}{width}")


def _number(value: float, metric: Metric, digits: int = 3) -> str:
    match metric:
        case "time":
            return units.seconds(value, digits)
        case "bandwidth":
            return units.rate(value, "B/s", digits)
        case "rate":
            return units.rate(value, "FLOP/s", digits)
        case _:
            assert_never(metric)


def format_factor(speed_up: Interval | None) -> str:
    """How many times as fast, with its interval; below 1 it is slower.

    >>> format_factor(Interval(1.262, 1.256, 1.275)), format_factor(Interval(0.863, None, None)), format_factor(None)
    ('1.262× (1.256–1.275)', '0.863×', 'unknown')
    """
    if speed_up is None:
        return "unknown"
    if speed_up.low is None or speed_up.high is None:
        return (
            f"{units.factor(speed_up.estimate) if speed_up.estimate >= 1 else units.significant(speed_up.estimate, 3)}×"
        )
    factor, low, high = units.factor_with_interval(speed_up.estimate, speed_up.low, speed_up.high, most=3)
    return f"{factor}× ({low}–{high})"


def format_gain(step: Step) -> Text:
    """The gain of a rung in a few words, with a sign, so that nothing is said by colour alone."""
    match step.kind:
        case "first":
            return Text("first rung" if step.number == 1 else "first correct rung")
        case "faster" | "slower":
            return _changed_by(step.gain)
        case "same":
            floor = None if step.gain is None else step.gain.floor
            return Text(f"= tie{'' if floor is None else f' (within {units.percent(floor)})'}")
        case "unclear":
            return Text(f"? unclear{'' if step.speed_up is None else f': {format_factor(step.speed_up)}'}")
        case "not comparable":
            return Text("? not comparable")
        case "wrong" | "wrong elsewhere":
            return Text("✕ wrong result, no gain")
        case "failed":
            failure = None if step.row is None else step.row.failure
            return Text(f"✕ {format_stage(failure)}" if failure is not None else "✕ no time")
        case "absent":
            return Text("○ not measured")
        case _:
            assert_never(step.kind)


def format_gain_short(step: Step) -> str:
    """The gain of a rung for a label: a sign and a factor."""
    if step.kind == "faster" and step.speed_up is not None:
        return f"▲ {units.factor(step.speed_up.estimate)}×"
    if step.kind == "slower" and step.gain is not None and step.gain.ratio is not None:
        return f"▼ {units.factor(step.gain.ratio.estimate)}×"
    match step.kind:
        case "same":
            return "= tie"
        case "unclear" | "not comparable":
            return "? unclear"
        case "wrong" | "wrong elsewhere":
            return "✕ wrong"
        case _:
            return str(format_gain(step))


def format_doubt(ladder: Ladder, step: Step) -> str:
    """The badge of a time that may be wrong by more than its interval, in brackets; empty for any other."""
    if step.row is None:
        return ""
    judged = quality(step.row.result, ladder.headline, ladder.run.method.clock)
    return f" ({format_badge(judged)})" if judged is not None and judged.level == "suspect" else ""


def _changed_by(pair: Pair | None) -> Text:
    """A decided difference: how many times faster or slower, with its interval."""
    if pair is None or pair.ratio is None:
        return Text("unknown")
    slower = pair.kind == "slower"
    ratio = pair.ratio if slower else pair.ratio.inverse()
    return Text(f"{'▼' if slower else '▲'} {_factor(ratio)} {pair.kind}")


def _factor(ratio: Interval) -> str:
    """A factor above 1 with its interval, with as many digits as the interval leaves."""
    if ratio.low is None or ratio.high is None:
        return f"{units.factor(ratio.estimate)}×"
    factor, low, high = units.factor_with_interval(ratio.estimate, ratio.low, ratio.high, most=3)
    return f"{factor}× ({low}–{high})"


def describe_gain(step: Step, name: Naming = format_variant) -> Text:
    """The gain of a rung as a sentence: which rung it refers to, and why there is none."""
    if step.kind == "absent":
        return Text(f"{format_gain(step)}: {describe_absence(step)}.")
    if step.kind in ("wrong", "wrong elsewhere", "failed"):
        return Text(f"{format_gain(step)}: {_why_wrong(step)}.")
    if step.over is None:
        return Text(f"{sentence_case(format_gain(step))}: the ladder starts here.")
    over = name(step.over.name)
    between = _between(step.between, name)
    match step.kind:
        case "faster" | "slower":
            return Text(f"{format_gain(step)} than {over}{between}.")
        case "same":
            return Text(f"{format_gain(step)} with {over}{between}.")
        case _:
            why = "" if step.gain is None else f": {describe_verdict_reason(step.gain.reason)}"
            return Text(f"{format_gain(step)} against {over}{between}{why}.")


def _between(names: Sequence[str], name: Naming) -> str:
    if not names:
        return ""
    listed = ", ".join(map(name, names))
    have = "has" if len(names) == 1 else "have"
    return f", the last rung before it with a correct time ({listed} between them {have} none)"


def _why_wrong(step: Step) -> Text:
    if step.row is None or step.row.failure is None:
        return Text("it is wrong at another size of this run, so that it may be right here by chance")
    if has_description(step.row.failure):
        return on_one_line(describe_failure(step.row.failure))
    return Text("no more is known")


def describe_absence(step: Step) -> Text:
    """Why a rung has no result."""
    match step.absence:
        case NotPlanned():
            return Text("this run does not measure it at this size")
        case NotYet():
            return Text("it has not been its turn yet")
        case RunEnded(status=status):
            return Text(_ENDED.get(status, "the run ended before it"))
        case None:
            return Text("")
        case _:
            assert_never(step.absence)


def describe_wrong_value(step: Step, metric: Metric) -> Text:
    """What a wrong result took; empty without such a time."""
    value = wrong_value_of(step.row, metric)
    return Text("" if value is None else f"it would be {format_value(value, metric)}, which does not count")


def describe_published(step: Step, problem: Problem, name: Naming = format_variant) -> tuple[Text, ...]:
    """What sources report for the idea of a rung, one sentence for each number."""
    gains = [_published_gain(published, problem, name) for published in step.declared.published]
    values = [_published_value(published) for published in step.declared.published_values]
    return (*gains, *values)


def _published_gain(published: PublishedStep, problem: Problem, name: Naming) -> Text:
    elsewhere = published.problem is not None and published.problem.key != problem.key
    at = f", at {format_problem(published.problem)}" if elsewhere and published.problem is not None else ""
    return Text(
        f"{units.factor(published.factor)}× over {name(published.over)}{_on(published.device)}{at} ({published.source})"
        f"{_remark(published.remark)}"
    )


def _published_value(published: PublishedValue) -> Text:
    form = {"flop/s": lambda v: units.rate(v, "FLOP/s", 3), "B/s": lambda v: units.rate(v, "B/s", 3)}
    value = form.get(published.unit, lambda v: units.seconds(v, 3))(published.value)
    return Text(f"{value}{_on(published.device)} ({published.source}){_remark(published.remark)}")


def _on(device: str | None) -> str:
    return f" on {device}" if device else ""


def _remark(remark: str) -> str:
    return f". {remark.rstrip('.')}" if remark else ""


def format_published(step: Step) -> str | None:
    """The published gains of a rung in a few characters, those over its own basis first; None if there is none."""
    over = None if step.over is None else step.over.name
    gains = sorted(step.declared.published, key=lambda p: p.over != over)
    return ", ".join(f"{units.factor(p.factor)}× over {p.over}" for p in gains) or None


def describe_techniques(step: Step) -> str:
    """The techniques that a rung adds; empty if it adds none.

    >>> describe_techniques(Step(DeclaredVariant("v", "cuda", ""), 1, None, new_techniques=frozenset({"tma", "wgmma"})))
    'TMA, wgmma'
    """
    return ", ".join(TECHNIQUE_NAMES[technique] for technique in _in_order(step.new_techniques))


def _in_order(techniques: frozenset[Technique]) -> list[Technique]:
    return [technique for technique in TECHNIQUE_NAMES if technique in techniques]


def format_excluded(variants: Sequence[DeclaredVariant], name: Naming = format_variant) -> tuple[Text, ...]:
    """Why variants are no rungs at this problem, with equal reasons together."""
    reasons: dict[str, list[str]] = {}
    for variant in variants:
        if variant.refusal is not None:
            reasons.setdefault(str(describe_reason(variant.refusal)), []).append(name(variant.name))
    return tuple(Text(f"{', '.join(names)}: {reason}") for reason, names in reasons.items())


def describe_library(row: Row, metric: Metric, name: Naming = format_variant) -> Text:
    """A library with its value, or why it has none."""
    value = value_of(row, metric)
    if value is None:
        failure = row.failure
        return Text(f"{name(row.result.variant)}: {format_failure(failure) if failure is not None else 'unknown'}")
    share = "" if row.efficiency is None else f", {format_share(row.efficiency)} of the roof"
    return Text(f"{name(row.result.variant)}: {format_value(value, metric)}{share}")


def format_roof(ladder: Ladder, metric: Metric) -> str | None:
    """The roof of the problem with its value; None if it is unknown."""
    value = roof_value(ladder, metric)
    if value is None or ladder.light is None:
        return None
    return f"roof {_number(value, metric)} ({ladder.light.bound}-bound)"


def describe_summary(summary: LadderSummary | None, metric: Metric, name: Naming = format_variant) -> Text:
    """One or two sentences about a ladder: from where to where, the largest gain, what the last rungs give, and the library."""
    if summary is None:
        return Text("No rung has a correct time yet.")
    first, best = (value_of(step.row, metric) for step in (summary.first, summary.best))
    title = format_backend(summary.backend)
    if summary.steps == 1 or first is None or best is None:
        value = format_value(best or first, metric)
        parts = [f"{title}: {name(summary.best.variant)} is the only rung with a correct time, {value}"]
    elif summary.total is None:
        value = format_value(best, metric)
        parts = [
            f"{title}: {summary.steps} rungs, of which the first, {name(summary.best.variant)}, is the fastest with {value}"
        ]
    else:
        span = _span(first.estimate, best.estimate, metric)
        times = "" if summary.total.ratio is None else _times(summary.total.ratio)
        parts = [f"{title}: {summary.steps} rungs from {span}{times}"]
    if summary.largest is not None and summary.largest.speed_up is not None and summary.steps > 2:
        gain = units.factor(summary.largest.speed_up.estimate)
        adds = describe_techniques(summary.largest)
        parts.append(f"the largest gain is {name(summary.largest.variant)}{f' ({adds})' if adds else ''}, {gain}×")
    if summary.slower:
        slower = [name(step.variant) for step in summary.slower[:2]]
        slower += [f"{len(summary.slower) - 2} more"] if len(summary.slower) > 2 else []
        *most, last = slower
        listed = f"{', '.join(most)} and {last}" if most else last
        parts.append(f"{listed} {'makes' if len(slower) == 1 else 'make'} it slower")
    if summary.tail is not None:
        parts.append(_tail(*summary.tail))
    against = _against_library(summary, name)
    return join(" ", [f"{'; '.join(parts)}.", against])


def _span(first: float, best: float, metric: Metric) -> str:
    """Two values of one metric, the unit once if it is the same.

    >>> _span(4.0e12, 799e12, "rate"), _span(0.5e9, 4.46e12, "bandwidth")
    ('4.00 to 799 TFLOP/s', '500 MB/s to 4.46 TB/s')
    """
    low, high = _number(first, metric), _number(best, metric)
    number, _, unit = low.partition(" ")
    return f"{number} to {high}" if high.endswith(f" {unit}") else f"{low} to {high}"


def _times(ratio: Interval) -> str:
    factor = 1 / ratio.estimate
    return f", {units.factor(factor)}×" if factor >= 1 else ""


def _tail(count: int, pair: Pair) -> str:
    if pair.ratio is None:
        return f"the last {count} together change less than {units.percent(SMALL, 0)}"
    change = 1 / pair.ratio.estimate - 1
    if pair.kind == "same":
        return f"the last {count} together change nothing that can be measured"
    if pair.kind == "unclear":
        return f"the last {count} together change no more than the noise ({units.percent(abs(change))})"
    return f"the last {count} together {'give' if change > 0 else 'cost'} {units.percent(abs(change))}"


def _against_library(summary: LadderSummary, name: Naming) -> str:
    """How the fastest rung compares with the fastest library and with the roof."""
    named = summary.steps == 1 or summary.best is summary.first
    subject = "It" if named else f"The fastest, {name(summary.best.variant)},"
    share = None if summary.best.row is None else summary.best.row.efficiency
    roof = "" if share is None else f"{format_share(share)} of the roof"
    pair = summary.library
    if pair is None:
        return f"{subject} reaches {roof}." if roof else ""
    library = f"{name(pair.before.variant)}, the fastest library{f', and reaches {roof}' if roof else ''}"
    if pair.kind in ("faster", "slower") and pair.ratio is not None:
        ratio = pair.ratio.inverse() if pair.kind == "faster" else pair.ratio
        return f"{subject} is {_factor(ratio)} {pair.kind} than {library}."
    return f"{subject} {'ties with' if pair.kind == 'same' else 'cannot be told from'} {library}."


def describe_code_age(step: Step, of: BackendLadder) -> Text:
    """A note if the variant is other code today than when it was measured; empty if not, or if `describe_ages` says so of all."""
    if not step.code_changed or of.outdated:
        return Text("")
    return Text("Its code has changed since this run: the idea is that of today, the time that of the earlier code.")


def describe_ages(of: BackendLadder) -> Text:
    """A note if all rungs are other code today than when they were measured; empty if not."""
    if not of.outdated:
        return Text("")
    return Text("The code of all rungs has changed since this run: the ideas are of today, the times of earlier code.")
