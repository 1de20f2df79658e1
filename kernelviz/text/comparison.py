"""Text of a comparison of two runs, for pages, the terminal and Python."""

from collections import Counter
from collections.abc import Sequence

from kernelviz.core import Result, units
from kernelviz.metrics.comparison import PAIR_KINDS, Comparison, Pair, PairKind, mean_ratio
from kernelviz.metrics.statistics import Interval
from kernelviz.text.results import format_variant
from kernelviz.text.sizes import format_sizes
from kernelviz.text.text import Text, join
from kernelviz.text.verdicts import describe_verdict_reason

SIGNS: dict[PairKind, str] = {
    "slower": "▼", "unclear": "?", "same": "=", "faster": "▲", "same code": "≈", "not comparable": "⊘",
}  # fmt: skip
MEANINGS: dict[PairKind, str] = {
    "slower": "B is slower by more than the noise.",
    "unclear": "The interval is partly inside the noise floor, or there are too few blocks. Measure with a larger budget.",
    "same": "The whole interval is inside the noise floor, which is at most 2 %.",
    "faster": "B is faster by more than the noise.",
    "same code": "Both runs used the same machine code, so the difference is the noise between them.",
    "not comparable": "A and B were measured by different methods, or one of them has no correct time.",
}
AS_FACTOR = 1.5
"""Changes beyond this ratio are written as a factor, smaller ones as percent."""
MUCH_NOISE = 0.02
"""With more noise than this, most changes of a kernel have no visible effect."""


def format_change(ratio: float) -> Text:
    """B's time relative to A's: percent up to a factor of 1.5, else the factor.

    >>> print(format_change(1.023), format_change(0.98), format_change(2.0), format_change(0.25), sep=", ")
    +2.3 %, -2.0 %, 2.00× as long, 4.00× as fast
    """
    if _as_percent(ratio):
        return Text(f"{_percent(ratio)} %")
    return Text(f"{ratio:.2f}× as long" if ratio > 1 else f"{1 / ratio:.2f}× as fast")


def _as_percent(ratio: float) -> bool:
    return 1 / AS_FACTOR <= ratio <= AS_FACTOR


def _percent(ratio: float) -> str:
    return f"{round((ratio - 1) * 100, 1) + 0.0:+.1f}"  # + 0.0: -0.0 becomes 0.0


def format_ratio(ratio: Interval | None) -> Text:
    """The change with its interval.

    >>> print(format_ratio(Interval(1.023, 1.02, 1.026)), format_ratio(Interval(0.5, 0.4, 0.625)), sep=", ")
    +2.3 % (+2.0 to +2.6), 2.00× as fast (1.60–2.50)
    >>> print(format_ratio(Interval(1.5, None, None)))
    +50.0 %
    """
    if ratio is None:
        return Text("")
    change = format_change(ratio.estimate)
    if ratio.low is None or ratio.high is None:
        return change
    if _as_percent(ratio.estimate):
        return change + f" ({_percent(ratio.low)} to {_percent(ratio.high)})"
    low, high = (ratio.low, ratio.high) if ratio.estimate > 1 else (1 / ratio.high, 1 / ratio.low)
    return change + f" ({low:.2f}–{high:.2f})"


def sign_of(pair: Pair) -> str:
    """The sign of the verdict; a cross if A has a correct time and B has none."""
    return "✕" if pair.broken else SIGNS[pair.kind]


def describe_pair(pair: Pair) -> Text:
    """The verdict of a pair with its sign, the change of its time, and the reason if there is no verdict."""
    sign = Text(f"{sign_of(pair)} {pair.kind}: ")
    change = format_ratio(pair.ratio)
    if pair.kind == "not comparable":
        return sign + describe_verdict_reason(pair.reason) + (f" ({change})" if pair.ratio else "")
    if pair.kind == "unclear" and (pair.ratio is None or pair.ratio.low is None):
        return sign + describe_verdict_reason(pair.reason)
    return sign + change + (", noise between these runs" if pair.kind == "same code" else "")


def format_case(pair: Pair, axes: Sequence[str], *, by_problem: bool = False) -> Text:
    """The case of a pair: its variant, unless variants were chosen by side, and the sizes that distinguish cases."""
    parts = ["" if by_problem else format_variant(pair.before.variant), format_sizes(pair.problem, axes)]
    return join(" · ", parts if any(parts) else [pair.problem.op])


def format_counts(comparison: Comparison) -> Text:
    """The number of pairs by verdict. The four verdicts are always listed, other kinds only if there is one."""
    counts = comparison.counts
    return join(
        ", ", (f"{counts[w]} {w}" for w in PAIR_KINDS if counts[w] or w in ("slower", "faster", "same", "unclear"))
    )


def describe_mean(comparison: Comparison) -> Text:
    """The geometric mean over the pairs with a verdict, or over those of the same code if there are none."""
    basis = mean_basis(comparison)
    mean = comparison.mean_ratio
    return basis if mean is None else Text(f"B's time against A's: {format_change(mean)}, {basis}")


def mean_basis(comparison: Comparison) -> Text:
    """The pairs over which the geometric mean is taken, or why there is no mean."""
    if comparison.judged:
        return Text(f"geometric mean of {units.counted(len(comparison.judged), 'case')} with a verdict")
    same_code = [p for p in comparison.pairs if p.kind == "same code"]
    mean = mean_ratio(same_code)
    if mean is None:
        return Text("no case could be compared")
    cases = units.counted(len(same_code), "case")
    return Text(f"all {cases} have the same code on both sides: the mean change of {format_change(mean)} is noise")


def describe_noise(comparison: Comparison) -> Text:
    """The noise between the two runs, and how it was measured."""
    if any(p.shared for p in comparison.pairs):
        return Text("Two variants of one run are compared round by round, with the noise floor of the baseline.")
    if comparison.noise is None and not comparison.judged:
        return Text("There is no verdict, so the noise is not needed.")
    if comparison.noise is None:
        return Text(
            "No case has the same code in both runs, so only the noise inside each run is known. Differences of clock, card or "
            "buffers between the runs are not included. To measure them, keep an unchanged variant in both runs."
        )
    cases = units.counted(comparison.noise_cases, "case")
    much = (
        ". Smaller differences have no meaning here; measure both runs again, one directly after the other"
        if noisy(comparison)
        else ""
    )
    return Text(
        f"Noise between these runs: {units.percent(comparison.noise)} "
        f"(the largest difference of {cases} with the same code in both){much}."
    )


def describe_refusals(comparison: Comparison) -> Text:
    """The most frequent reasons why pairs have no verdict. Empty if all pairs with times on both sides have one."""
    refused = Counter(p.reason for p in comparison.pairs if p.kind == "not comparable" and not p.broken)
    reasons = [f"{describe_verdict_reason(r)} ({units.counted(n, 'case')})" for r, n in refused.most_common(3)]
    return Text(f"No verdict: {'; '.join(reasons)}{'; …' if len(refused) > 3 else ''}." if refused else "")


def noisy(comparison: Comparison) -> bool:
    """Whether the noise between the runs hides most differences."""
    return comparison.noise is not None and comparison.noise > MUCH_NOISE


def describe_unpaired(comparison: Comparison) -> tuple[Text, ...]:
    """The cases that only A or only B contains, one line for each side."""
    sides = {"A": comparison.only_a, "B": comparison.only_b}
    return tuple(_unpaired(side, results) for side, results in sides.items() if results)


def _unpaired(side: str, results: Sequence[Result]) -> Text:
    more = f" and {len(results) - 12} more" if len(results) > 12 else ""
    keys = "; ".join(r.case.key for r in results[:12])
    return Text(f"Only in {side} ({units.counted(len(results), 'case')}): {keys}{more}")
