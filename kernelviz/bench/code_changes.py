"""Use case: what changed in the machine code between two cases of one or two runs, the likeliest cause of a difference first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from kernelviz.bench.code_facts import CodeFacts
from kernelviz.core import Result, Run
from kernelviz.core.code_changes import CodeChanges, CodeSide
from kernelviz.metrics.code_changes import code_changes, ranked
from kernelviz.metrics.comparison import Comparison, Pair
from kernelviz.metrics.figures import Headline
from kernelviz.text.code_changes import describe_cause, describe_change, describe_changes
from kernelviz.text.code_mechanisms import describe_mechanism


def changes_between(
    facts: CodeFacts, a: Run, before: Result, b: Run, after: Result, *, headline: Headline = "cold"
) -> CodeChanges:
    """The changes from a result of run A to one of run B. Which side is faster is read from their times, so both should be of one
    problem. Needs nvdisasm, but no GPU; where facts are missing, the changes say why."""
    (first,), (second,) = facts.of_run(a, [before]), facts.of_run(b, [after])
    return code_changes(first, second, headline=headline)


def changes_of_pair(facts: CodeFacts, compared: Comparison, pair: Pair) -> CodeChanges:
    """The changes of one pair of a comparison; its verdict says which side is faster."""
    return changes_of_pairs(facts, compared, (pair,))[0]


def changes_of_pairs(facts: CodeFacts, compared: Comparison, pairs: Sequence[Pair]) -> tuple[CodeChanges, ...]:
    """The changes of several pairs of a comparison, in their order."""
    before = facts.of_run(compared.a, [pair.before for pair in pairs])
    after = facts.of_run(compared.b, [pair.after for pair in pairs])
    return tuple(
        ranked(first, second, faster_side(pair), headline=compared.headline)
        for pair, first, second in zip(pairs, before, after, strict=True)
    )


def faster_side(pair: Pair) -> CodeSide | None:
    """The faster side by the verdict of the pair; None if it has none, or if both are equally fast."""
    match pair.kind:
        case "slower":
            return "a"
        case "faster":
            return "b"
        case _:
            return None


def record(changes: CodeChanges) -> dict[str, Any]:
    """The changes as plain values, with their text, for JSON and data frames. An unknown value is None."""
    return {
        "faster": changes.faster,
        "same_code": changes.same_code,
        "kernel_a": changes.a_kernel,
        "kernel_b": changes.b_kernel,
        "library_kernel_a": changes.a_library_kernel,
        "library_kernel_b": changes.b_library_kernel,
        "missing_a": changes.a_missing,
        "missing_b": changes.b_missing,
        "summary": str(describe_changes(changes)),
        "cause": str(describe_cause(changes)),
        "changes": [
            {
                **msgspec.to_builtins(one.change),
                "explains": one.explains,
                "text": str(describe_change(one.change)),
                "mechanism": None if (how := describe_mechanism(one.change)) is None else str(how),
            }
            for one in changes.changes
        ],
    }
