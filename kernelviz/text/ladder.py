"""The ladder of an op in text: what each rung gains here and as published, and what changed."""

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
from kernelviz.metrics.ladder_summary import roof_value, value_of, wrong_value_of
from kernelviz.metrics.quality import quality
from kernelviz.metrics.rows import Row
from kernelviz.metrics.statistics import Interval
from kernelviz.text.failures import describe_failure, describe_reason, format_failure, format_stage, has_description
from kernelviz.text.machine_code import TECHNIQUE_NAMES
from kernelviz.text.quality import format_badge
from kernelviz.text.results import format_variant
from kernelviz.text.roofs import format_share
from kernelviz.text.sizes import format_problem
from kernelviz.text.text import Text, on_one_line, sentence_case
from kernelviz.text.verdicts import describe_verdict_reason

Naming = Callable[[str], str]
"""How the name of a variant is written: `format_variant` on pages, as code in Markdown."""
METRICS: dict[Metric, str] = {"time": "time", "bandwidth": "bandwidth", "rate": "arithmetic rate"}
HOW_TO_READ = (
    "A rung is a variant of the op; the rungs of a backend are in the order of the catalogue, from the plainest to the best.",
    "The gain of a rung is the time of the last correct rung before it divided by its own time, in the rounds that measured "
    "both, with the 95 % interval; so it can differ a little from the ratio of the two values. “Faster”, “slower” and “tie” are "
    "verdicts beyond, or within, the noise floor; where the interval is partly inside the noise floor, the step is unclear.",
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
    >>> print(format_value(Interval(2e-3, 1e-3, 3e-3), "time"), "|", format_value(Interval(3e12, 2e12, 6e12), "bandwidth"))
    2.0 ms ± 50.0 % | 3.0 TB/s ± 50.0 %
    >>> print(format_value(Interval(320.0e-6, None, None), "time"), "|", format_value(None, "rate"))
    320.0 µs | unknown
    """
    if value is None:
        return Text("unknown")
    half = _half_width(value, metric)
    digits = units.digits_of(half)
    width = "" if half is None else f" ± {units.width(half)}"
    return Text(f"{format_estimate(value.estimate, metric, digits)}{width}")


def _half_width(value: Interval, metric: Metric) -> float | None:
    """Half of the interval of the time, also where the value is a rate: `value` over the time."""
    if metric == "time" or value.low is None or value.high is None or value.low <= 0:
        return value.half_width
    return (value.estimate / value.low - value.estimate / value.high) / 2


def format_estimate(value: float, metric: Metric, digits: int = 3) -> str:
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
    return Text(f"{'▼' if slower else '▲'} {format_times(ratio)} {pair.kind}")


def format_times(ratio: Interval) -> str:
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
        f"{units.factor(published.factor)}×, the source's kernel of this rung over its kernel of {name(published.over)}"
        f"{_on(published.device, ', on ')}{at} ({published.source}){_remark(published.remark)}"
    )


def _published_value(published: PublishedValue) -> Text:
    form = {"flop/s": lambda v: units.rate(v, "FLOP/s", 3), "B/s": lambda v: units.rate(v, "B/s", 3)}
    value = form.get(published.unit, lambda v: units.seconds(v, 3))(published.value)
    return Text(f"{value}{_on(published.device)} ({published.source}){_remark(published.remark)}")


def _on(device: str | None, before: str = " on ") -> str:
    return f"{before}{device}" if device else ""


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
    reached = (
        ""
        if metric != "bandwidth" or ladder.light.bound == "memory"
        else ": the bandwidth at which arithmetic is the limit"
    )
    return f"roof {format_estimate(value, metric)} ({ladder.light.bound}-bound{reached})"


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
