"""Use case: two kernels: their measured difference, what changed in their machine code, and the lines that differ.

Page, CLI and Python show the same numbers as the comparison of two runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from kernelviz.bench import comparison
from kernelviz.bench.bench import Bench
from kernelviz.bench.code_changes import faster_side
from kernelviz.bench.code_changes import record as changes_record
from kernelviz.bench.code_listings import CodeDiff, KernelCode, code_diff, counterpart
from kernelviz.core import Result, Run, check_name
from kernelviz.core.code_changes import CodeChanges
from kernelviz.core.code_facts import CaseFacts
from kernelviz.core.code_listing import ListingKind
from kernelviz.metrics.code_changes import ranked
from kernelviz.metrics.comparison import Comparison, Pair
from kernelviz.text import Text, describe_pair, format_problem, format_variant
from kernelviz.text.code_changes import describe_changes
from kernelviz.text.code_listings import describe_line_diff, describe_normalised
from kernelviz.text.comparison import describe_verdict_of
from kernelviz.text.text import sentence_case


@dataclass(frozen=True, slots=True)
class CodeSide:
    """A case, and one of its kernels; None for that which corresponds to the other side's, or for the first one."""

    run: Run
    variant: str
    problem: str
    kernel: str | None = None


@dataclass(frozen=True, slots=True)
class MeasuredDifference:
    """The pair of two cases at one problem, as the comparison of two runs has it: B against A, cold device times."""

    comparison: Comparison
    pair: Pair


@dataclass(frozen=True, slots=True)
class ComparedCode:
    """Two kernels. `measured` is None for different problems, of which a ratio would say nothing about the code, and for one
    case with itself."""

    a: KernelCode
    b: KernelCode
    diff: CodeDiff
    measured: MeasuredDifference | None
    changes: CodeChanges


def compare_code(
    bench: Bench, a: CodeSide, b: CodeSide, kind: ListingKind, *, normalise: bool | None = None
) -> ComparedCode:
    """Compare the code of two kernels in one language. `normalise`: see `code_diff`.

    Errors: UnknownName for a variant, problem or kernel that a run does not have; BadField if a side has no code of this kind.
    """
    code_a = bench.history.code_listings.of_kernel(a.run, a.variant, a.problem, a.kernel, (kind,))
    kernel_b = b.kernel
    if kernel_b is None:
        kernel_b = counterpart(bench.history.code_listings.kernels_of(b.run, b.variant, b.problem), code_a.kernel)
    code_b = bench.history.code_listings.of_kernel(b.run, b.variant, b.problem, kernel_b, (kind,))
    difference = measured_difference(comparison.compare, a, b)
    facts = [facts_of(bench, side) for side in (a, b)]
    return ComparedCode(
        a=code_a,
        b=code_b,
        diff=code_diff(code_a, code_b, kind, normalise=normalise),
        measured=difference,
        changes=changes_of(facts[0], facts[1], difference),
    )


class CompareRuns(Protocol):
    """Compares one variant of each of two runs, problem by problem."""

    def __call__(self, a: Run, b: Run, *, variant_a: str, variant_b: str) -> Comparison: ...


def measured_difference(compare: CompareRuns, a: CodeSide, b: CodeSide) -> MeasuredDifference | None:
    """The measured difference of two cases, None for two problems and for one case. `compare`: compares two runs."""
    if a.problem != b.problem or (a.run.id, a.variant) == (b.run.id, b.variant):
        return None
    compared = compare(a.run, b.run, variant_a=a.variant, variant_b=b.variant)
    pair = next((one for one in compared.pairs if one.problem.key == a.problem), None)
    return None if pair is None else MeasuredDifference(compared, pair)


def changes_of(a: CaseFacts, b: CaseFacts, difference: MeasuredDifference | None) -> CodeChanges:
    """What changed in the machine code, the likeliest cause of the measured difference first."""
    if difference is None:
        return ranked(a, b, None)
    return ranked(a, b, faster_side(difference.pair), headline=difference.comparison.headline)


def facts_of(bench: Bench, side: CodeSide) -> CaseFacts:
    """The facts of a case. Errors: UnknownName for a variant or problem that the run does not have."""
    return bench.history.code_facts.of_run(side.run, [result_of(side)])[0]


def result_of(side: CodeSide) -> Result:
    """The result of a case. Errors: UnknownName."""
    results = {r.problem.key: r for r in side.run.results if r.variant == side.variant}
    check_name("variant", side.variant, side.run.plan.variants, of=f"run {side.run.id!r}")
    check_name("problem", side.problem, results, of=f"variant {side.variant!r}")
    return results[side.problem]


def describe_compared(compared: ComparedCode) -> Iterator[Text]:
    """Lines about two kernels: both sides, the verdict, what changed, and how many lines differ."""
    for name, side in (("A", compared.a), ("B", compared.b)):
        yield Text(f"{name}: {format_variant(side.variant)} at {format_problem(side.problem)}, kernel {side.kernel}")
    if compared.measured is not None:
        yield Text("B against A: ") + describe_pair(compared.measured.pair)
        if compared.measured.pair.kind != "not comparable":
            yield describe_verdict_of(compared.measured.pair)
    yield sentence_case(f"{describe_changes(compared.changes)}.")
    yield describe_line_diff(compared.diff.diff) + (
        f" {describe_normalised(compared.diff.kind)}" if compared.diff.normalised else ""
    )


def compared_record(compared: ComparedCode) -> dict[str, Any]:
    """Two kernels as plain values, for JSON."""
    diff = compared.diff.diff
    pair = compared.measured.pair if compared.measured is not None else None
    ratio = pair.ratio if pair is not None else None
    return {
        "a": _side(compared.a),
        "b": _side(compared.b),
        "verdict": None if pair is None else pair.kind,
        "ratio": None if ratio is None else ratio.estimate,
        "ratio_low": None if ratio is None else ratio.low,
        "ratio_high": None if ratio is None else ratio.high,
        "code_changes": changes_record(compared.changes),
        "kind": compared.diff.kind,
        "normalised": compared.diff.normalised,
        "equal_lines": diff.equal,
        "lines_only_in_a": diff.removed,
        "lines_only_in_b": diff.added,
        "changes": [
            {"a": list(diff.a[c.a_first : c.a_end]), "b": list(diff.b[c.b_first : c.b_end])} for c in diff.changes
        ],
    }


def _side(code: KernelCode) -> dict[str, Any]:
    return {"run": code.run_id, "problem": code.problem.key, "variant": code.variant, "kernel": code.kernel}
