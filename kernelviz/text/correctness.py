"""Correctness in text."""

from kernelviz.core import Failure, Result
from kernelviz.text.failures import describe_failure
from kernelviz.text.text import Text


def describe_correctness(result: Result) -> Text:
    """Right, wrong or not checked, with the worst error as a share of what is allowed.

    >>> from kernelviz.core.problem import Problem
    >>> from kernelviz.core.result import Accuracy, Timing
    >>> ok = Accuracy(passed=True, relative_l2=1e-7, max_abs=1e-6, worst_of_bound=0.25, seeds=3)
    >>> one = Problem(op="add", sizes={"n": 1}, dtype="fp32")
    >>> str(describe_correctness(Result(problem=one, variant="v", outcome=Timing(), accuracy=ok)))
    '✓ 25 % of the bound, 3 seeds'
    """
    checked = result.accuracy
    if checked is None:
        return Text("✕ failed before the check" if isinstance(result.outcome, Failure) else "not checked")
    seeds = f", {checked.seeds} seeds" if checked.seeds else ""
    if checked.worst_of_bound is None:
        known = bool(checked.reasons or checked.message)
        wrong = describe_failure(checked) if known else Text("error unknown")
        return Text("✓ correct" if checked.passed else f"✕ wrong: {wrong}") + seeds
    if checked.passed:
        return Text(f"✓ {checked.worst_of_bound * 100:.0f} % of the bound{seeds}")
    return Text(f"✕ wrong: {checked.worst_of_bound:.3g} × the bound{seeds}")
