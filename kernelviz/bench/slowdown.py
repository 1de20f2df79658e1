"""Use case: why cases of B are slower or faster than those of A, by all that is known of both sides of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernelviz.bench.code_changes import changes_of_pairs
from kernelviz.bench.code_changes import record as changes_record
from kernelviz.bench.code_facts import CodeFacts
from kernelviz.core import LIVING
from kernelviz.metrics.comparison import Comparison, Pair
from kernelviz.metrics.slowdown import Slowdown, is_slower, slowdown
from kernelviz.metrics.speedup import is_faster, speedup
from kernelviz.text.slowdown import describe_findings, describe_slowdown, describe_topic


def slowdowns(facts: CodeFacts, compared: Comparison) -> tuple[Slowdown, ...]:
    """Every pair of which B is slower by its verdict, or has no correct time, the worst first.

    The machine code of these pairs is read, which takes seconds for cubins that were not read before. While a run goes on it is
    not read, because that would disturb its times.
    """
    return _explained(facts, compared, tuple(pair for pair in compared.pairs if is_slower(pair)))


def speedups(facts: CodeFacts, compared: Comparison) -> tuple[Slowdown, ...]:
    """Every pair of which B is faster by its verdict, the largest gain first: the reasons for which A is slower, told from A to
    B. The machine code is read as for `slowdowns`."""
    return _explained(facts, compared, tuple(pair for pair in reversed(compared.pairs) if is_faster(pair)))


def explanation_of_pair(facts: CodeFacts, compared: Comparison, pair: Pair) -> Slowdown | None:
    """What can make B slower, or faster, in one pair; None if it is neither."""
    return _explained(facts, compared, (pair,))[0] if is_slower(pair) or is_faster(pair) else None


def _explained(facts: CodeFacts, compared: Comparison, pairs: Sequence[Pair]) -> tuple[Slowdown, ...]:
    living = any(run.status in LIVING for run in (compared.a, compared.b))
    changes = [None] * len(pairs) if living else changes_of_pairs(facts, compared, pairs)
    return tuple(
        (speedup if is_faster(pair) else slowdown)(compared, pair, of_pair)
        for pair, of_pair in zip(pairs, changes, strict=True)
    )


def records(slow: Sequence[Slowdown]) -> list[dict[str, Any]]:
    """One record for each slow or fast pair, for JSON and data frames."""
    return [
        {
            "problem": one.pair.problem.key,
            "variant_a": one.pair.before.variant,
            "variant_b": one.pair.after.variant,
            "ratio": one.pair.ratio.estimate if one.pair.ratio else None,
            "broken": one.pair.broken,
            "summary": str(describe_slowdown(one)),
            "reasons": [str(text) for text in describe_findings(one.reasons)],
            "topics": {
                topic.topic: {
                    "status": topic.status,
                    "unknown": topic.unknown,
                    "text": str(describe_topic(topic, one.faster)),
                }
                for topic in one.topics
            },
            "code": None if one.changes is None else changes_record(one.changes),
        }
        for one in slow
    ]
