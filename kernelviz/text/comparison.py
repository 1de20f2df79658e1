"""Text of a comparison of two runs, for pages, the terminal and Python."""

from collections import Counter
from collections.abc import Sequence

from kernelviz.core import Result, units
from kernelviz.metrics.comparison import PAIR_KINDS, Comparison, Pair, PairKind, mean_ratio
from kernelviz.metrics.statistics import Interval
from kernelviz.metrics.verdict_reasons import Apart
from kernelviz.text.results import format_variant
from kernelviz.text.sizes import format_sizes
from kernelviz.text.text import Text, join, sentence_case
from kernelviz.text.verdicts import describe_verdict_reason

SIGNS: dict[PairKind, str] = {
    "slower": "▼", "unclear": "?", "same": "=", "faster": "▲", "same code": "≈", "not comparable": "⊘",
}  # fmt: skip
KIND_NAMES: dict[PairKind, str] = {
    "slower": "slower", "unclear": "unclear", "same": "same", "faster": "faster", "same code": "identical",
    "not comparable": "not comparable",
}  # fmt: skip
"""The name of each verdict for people."""
MEANINGS: dict[PairKind, str] = {
    "slower": "The whole 95 % interval is beyond the noise floor, and B takes longer.",
    "unclear": "The interval is partly inside the noise floor, or there are too few blocks: measure longer.",
    "same": "The whole 95 % interval is inside the noise floor, which is at most 2 %.",
    "faster": "The whole 95 % interval is beyond the noise floor, and B takes less time.",
    "same code": "Both runs used the same machine code, so the difference is noise.",
    "not comparable": "A and B were measured in different ways, or one of them has no correct time.",
}
_MOST_DECIMALS = 3
MUCH_NOISE = 0.02
"""With more noise than this, most changes of a kernel have no visible effect."""


def format_change(ratio: Interval) -> Text:
    """How much faster or slower B is than A, as a factor with the digits that its interval leaves.

    >>> exact = [Interval(r, None, None) for r in (1.023, 0.98, 0.25, 1.0001, 58.004)]
    >>> print(*map(format_change, exact), sep=", ")
    1.023× slower, 1.020× faster, 4.00× faster, 1.000×, 58.0× slower
    >>> print(format_change(Interval(58.004, 57.5, 58.5)), format_change(Interval(1.02, 1.0, 1.04)), sep=", ")
    58.0× slower, 1.02× slower
    """
    factor, _ = _factor_and_ends(ratio)
    if float(factor.replace(",", "")) == 1:
        return Text(f"{factor}×")
    return Text(f"{factor}× {'slower' if ratio.estimate > 1 else 'faster'}")


def format_factor(ratio: Interval) -> str:
    """The factor between two times, whichever is longer. It has at most three decimals, because a noise floor is at least 0.5 %.

    >>> format_factor(Interval(0.5, 0.498, 0.502)), format_factor(Interval(1.0234, None, None))
    ('2.000×', '1.023×')
    """
    return f"{_factor_and_ends(ratio)[0]}×"


def _factor_and_ends(ratio: Interval) -> tuple[str, str]:
    """The factor, whichever time is longer, and the ends of its interval; no ends if there is no interval."""
    of = ratio if ratio.estimate > 1 else ratio.inverse()
    if of.low is None or of.high is None:
        return f"{of.estimate:,.{units.factor_decimals(of.estimate, most=_MOST_DECIMALS)}f}", ""
    factor, low, high = units.factor_with_interval(of.estimate, of.low, of.high, most=_MOST_DECIMALS)
    return factor, f" ({low}–{high})"


def format_ratio(ratio: Interval | None) -> Text:
    """The change with its interval.

    >>> print(format_ratio(Interval(1.023, 1.02, 1.026)), format_ratio(Interval(0.5, 0.4, 0.625)), sep=", ")
    1.023× slower (1.020–1.026), 2.0× faster (1.6–2.5)
    >>> print(format_ratio(Interval(1.5, None, None)))
    1.500× slower
    """
    return Text("") if ratio is None else format_change(ratio) + _factor_and_ends(ratio)[1]


def sign_of(pair: Pair) -> str:
    """The sign of the verdict; a cross if A has a correct time and B has none."""
    return "✕" if pair.broken else SIGNS[pair.kind]


def format_kind(pair: Pair) -> str:
    """The verdict with its sign."""
    return f"{sign_of(pair)} {KIND_NAMES[pair.kind]}"


def describe_pair(pair: Pair) -> Text:
    """The verdict of a pair with its sign, the change of its time, and the reason if there is no verdict."""
    change = format_ratio(pair.ratio)
    if pair.kind in ("slower", "faster"):
        return Text(f"{sign_of(pair)} ") + change
    verdict = Text(f"{format_kind(pair)}: ")
    if pair.kind == "not comparable":
        return verdict + describe_verdict_reason(pair.reason) + (f" ({change})" if pair.ratio else "")
    if pair.kind == "unclear" and (pair.ratio is None or pair.ratio.low is None):
        return verdict + describe_verdict_reason(pair.reason)
    return verdict + change


def describe_verdict_of(pair: Pair) -> Text:
    """One sentence: the verdict, and the fact from which it follows."""
    reason = describe_verdict_reason(pair.reason)
    if pair.kind in ("slower", "faster"):
        return Text(f"B is {pair.kind}: {reason}.")
    if pair.kind == "same":
        return Text(f"A and B are equally fast: {reason}.")
    return sentence_case(f"{KIND_NAMES[pair.kind]}: {reason}.")


def format_case(pair: Pair, axes: Sequence[str], *, by_problem: bool = False) -> Text:
    """The case of a pair: its variant, unless variants were chosen by side, and the sizes that distinguish cases."""
    parts = ["" if by_problem else format_variant(pair.before.variant), format_sizes(pair.problem, axes)]
    return join(" · ", parts if any(parts) else [pair.problem.op])


def format_counts(comparison: Comparison) -> Text:
    """The number of pairs by verdict. The four verdicts are always listed, other kinds only if there is one."""
    counts = comparison.counts
    return join(
        ", ",
        (
            f"{counts[w]} {KIND_NAMES[w]}"
            for w in PAIR_KINDS
            if counts[w] or w in ("slower", "faster", "same", "unclear")
        ),
    )


def describe_mean(comparison: Comparison) -> Text:
    """The geometric mean over the pairs with a verdict, or over those of the same code if there are none."""
    basis = mean_basis(comparison)
    mean = comparison.mean_ratio
    if mean is not None and not any(p.kind in ("faster", "slower") for p in comparison.judged):
        return Text(f"B against A: no case is faster or slower; {basis}: {units.percent(abs(mean - 1))} apart")
    return basis if mean is None else Text(f"B against A: {format_change(Interval(mean, None, None))}, {basis}")


def mean_basis(comparison: Comparison) -> Text:
    """The pairs over which the geometric mean is taken, or why there is no mean."""
    if comparison.judged:
        unclear = comparison.counts["unclear"]
        doubt = f", {unclear} of them unclear" if unclear else ""
        return Text(f"geometric mean of {units.counted(len(comparison.judged), 'case')} with a verdict{doubt}")
    same_code = [p for p in comparison.pairs if p.kind == "same code"]
    mean = mean_ratio(same_code)
    if mean is None:
        return Text("no case could be compared")
    cases = units.counted(len(same_code), "case")
    return Text(
        f"all {cases} ran identical code: the mean change ({format_change(Interval(mean, None, None))}) is noise"
    )


def describe_noise(comparison: Comparison) -> Text:
    """The noise between the two runs, and how it was measured."""
    if any(isinstance(p.reason, Apart) for p in comparison.pairs):
        return Text(
            "Each variant was measured in a process of its own, so no round has both. The noise floor is twice the usual one."
        )
    if any(p.shared for p in comparison.pairs):
        return Text(
            "Both variants were measured in the same rounds. The noise floor is that of the baseline; "
            "between a time of graphs and one of the stream it is at least 0.15 µs."
        )
    if comparison.noise is None and not comparison.judged:
        return Text("Not needed, because no case has a verdict.")
    if comparison.noise is None and comparison.a.environment.device.name != comparison.b.environment.device.name:
        return Text(
            "Only the noise inside each run is known: on two devices, identical code takes different times, so it does not "
            "show the noise between the runs."
        )
    if comparison.noise is None:
        return Text(
            "Only the noise inside each run is known, because no case ran identical code in both. To include the noise between "
            "the runs, keep an unchanged variant in both."
        )
    cases = units.counted(comparison.noise_cases, "case")
    much = (
        ". Measure both runs again, one directly after the other, to see smaller differences"
        if noisy(comparison)
        else ""
    )
    return Text(
        f"Noise between these runs: {units.percent(comparison.noise)} "
        f"(the largest change among {cases} with identical code){much}."
    )


def describe_refusals(comparison: Comparison) -> Text:
    """The most frequent reasons why pairs have no verdict. Empty if all pairs with times on both sides have one."""
    refused = Counter(p.reason for p in comparison.pairs if p.kind == "not comparable" and not p.broken)
    reasons = [f"{describe_verdict_reason(r)} ({units.counted(n, 'case')})" for r, n in refused.most_common(3)]
    return Text(f"Not comparable: {'; '.join(reasons)}{'; …' if len(refused) > 3 else ''}." if refused else "")


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
