"""What a comparison says, in words: one place for page, terminal and Python."""

from collections import Counter
from collections.abc import Sequence

from kernelviz.core import units
from kernelviz.metrics.comparison import PAIR_KINDS, Comparison, Pair, PairKind, mean_ratio
from kernelviz.metrics.statistics import Interval
from kernelviz.text.sizes import format_sizes
from kernelviz.text.verdicts import describe_verdict_reason

SIGNS: dict[PairKind, str] = {
    "slower": "▼", "unclear": "?", "same": "=", "faster": "▲", "same code": "≈", "not comparable": "⊘",
}  # fmt: skip
MEANINGS: dict[PairKind, str] = {
    "slower": "B takes longer, by more than the noise.",
    "unclear": "The interval straddles the noise floor, or there are too few blocks: measure with a larger budget.",
    "same": "The whole interval lies inside the noise floor, which is at most 2 %.",
    "faster": "B takes less time, by more than the noise.",
    "same code": "The same machine code ran in both, so what differs is the noise between these runs.",
    "not comparable": "The two were measured in different ways, or one has no correct time.",
}
AS_FACTOR = 1.5
"""Differences beyond this factor are told as one, smaller ones as percent."""
MUCH_NOISE = 0.02
"""Runs whose noise is more than this cannot show what most changes of a kernel are worth."""


def format_change(ratio: float) -> str:
    """B's time against A's: percent where they are near each other, else the factor.

    >>> format_change(1.023), format_change(0.98), format_change(2.0), format_change(0.25)
    ('+2.3 %', '-2.0 %', '2.00× as long', '4.00× as fast')
    """
    if _as_percent(ratio):
        return f"{_percent(ratio)} %"
    return f"{ratio:.2f}× as long" if ratio > 1 else f"{1 / ratio:.2f}× as fast"


def _as_percent(ratio: float) -> bool:
    return 1 / AS_FACTOR <= ratio <= AS_FACTOR


def _percent(ratio: float) -> str:
    return f"{round((ratio - 1) * 100, 1) + 0.0:+.1f}"  # + 0.0: none reads as -0.0


def format_ratio(ratio: Interval | None) -> str:
    """The change with its interval.

    >>> format_ratio(Interval(1.023, 1.02, 1.026)), format_ratio(Interval(0.5, 0.4, 0.625))
    ('+2.3 % (+2.0 to +2.6)', '2.00× as fast (1.60–2.50)')
    >>> format_ratio(Interval(1.5, None, None))
    '+50.0 %'
    """
    if ratio is None:
        return ""
    said = format_change(ratio.estimate)
    if ratio.low is None or ratio.high is None:
        return said
    if _as_percent(ratio.estimate):
        return f"{said} ({_percent(ratio.low)} to {_percent(ratio.high)})"
    low, high = (ratio.low, ratio.high) if ratio.estimate > 1 else (1 / ratio.high, 1 / ratio.low)
    return f"{said} ({low:.2f}–{high:.2f})"


def sign_of(pair: Pair) -> str:
    """The sign of its word; a cross where B lost what A had."""
    return "✕" if pair.broken else SIGNS[pair.kind]


def describe_pair(pair: Pair) -> str:
    """The verdict of a pair with its sign, the change of its time, and why there is no verdict where there is none."""
    said = f"{sign_of(pair)} {pair.kind}"
    change = format_ratio(pair.ratio)
    match pair.kind:
        case "not comparable":
            return f"{said}: {describe_verdict_reason(pair.reason)}" + (f" ({change})" if change else "")
        case "same code":
            return f"{said}: {change} is noise between these runs"
        case "unclear":
            return (
                f"{said}: {change}"
                if pair.ratio is not None and pair.ratio.low is not None
                else f"{said}: {describe_verdict_reason(pair.reason)}"
            )
        case _:
            return f"{said}: {change}"


def format_case(pair: Pair, axes: Sequence[str], *, by_problem: bool = False) -> str:
    """Which case a pair is of: the variant, unless one of each side was chosen, and the sizes that tell cases apart."""
    name = "" if by_problem else pair.before.variant.replace("_", " ")
    sizes = format_sizes(pair.problem, axes)
    return " · ".join(part for part in (name, sizes) if part) or pair.problem.op


def format_counts(comparison: Comparison) -> str:
    """How many pairs have each word; words of which there are none are left out, but for the four verdicts.

    The four stand also at zero: that nothing is slower is what was asked.
    """
    counts = comparison.counts
    listed = [w for w in PAIR_KINDS if counts[w] or w in ("slower", "faster", "same", "unclear")]
    return ", ".join(f"{counts[w]} {w}" for w in listed)


def describe_mean(comparison: Comparison) -> str:
    """The geometric mean over the pairs with a verdict; over those of the same code where there are no others."""
    mean = comparison.mean_ratio
    if mean is not None:
        return f"B's time against A's: {format_change(mean)}, {mean_basis(comparison)}"
    return mean_basis(comparison)


def mean_basis(comparison: Comparison) -> str:
    """What the geometric mean is over, or why there is none."""
    if comparison.judged:
        return f"geometric mean of {_cases(len(comparison.judged))} with a verdict"
    alike = [p for p in comparison.pairs if p.kind == "same code"]
    if (mean := mean_ratio(alike)) is None:
        return "no case could be compared"
    return f"the same code in all {_cases(len(alike))} compared: {format_change(mean)} is noise (geometric mean)"


def describe_noise(comparison: Comparison) -> str:
    """What the noise between the two runs is known from."""
    if any(p.shared for p in comparison.pairs):
        return "Two variants of one run: compared round by round, against the noise that the baseline shows against itself."
    if comparison.noise is None and not comparison.judged:
        return "Nothing is judged here, so no noise is asked for."
    if comparison.noise is None:
        return (
            "No case has the same code in both runs, so only the noise inside each run is known, not what moved between them "
            "(clock, card, place in memory). Keep an unchanged variant in both to know it."
        )
    of = f"the largest difference of {_cases(comparison.noise_cases)} with the same code in both"
    much = (
        "; smaller differences mean nothing here: measure both again, one after the other" if noisy(comparison) else ""
    )
    return f"Noise between these runs: {units.percent(comparison.noise)} ({of}){much}."


def describe_refusals(comparison: Comparison) -> str:
    """Why pairs got no verdict, the reason of most first; empty where all that have times did."""
    refused = Counter(p.reason for p in comparison.pairs if p.kind == "not comparable" and not p.broken)
    said = "; ".join(f"{describe_verdict_reason(reason)} ({_cases(count)})" for reason, count in refused.most_common(3))
    return f"No verdict: {said}{'; …' if len(refused) > 3 else ''}." if refused else ""


def noisy(comparison: Comparison) -> bool:
    """Whether the runs differ so much by themselves that little can be told from them."""
    return comparison.noise is not None and comparison.noise > MUCH_NOISE


def describe_unpaired(comparison: Comparison) -> tuple[str, ...]:
    """The cases that one side alone has, a line a side."""
    lines = []
    for side, results in (("A", comparison.only_a), ("B", comparison.only_b)):
        if results:
            keys = [r.case.key for r in results]
            more = f" and {len(keys) - 12} more" if len(keys) > 12 else ""
            lines.append(f"Only in {side} ({_cases(len(keys))}): {'; '.join(keys[:12])}{more}")
    return tuple(lines)


def _cases(count: int) -> str:
    return f"{count} case{'s' if count != 1 else ''}"
