"""Live mode in text: which results the page shows while others are being measured."""

from kernelviz.core import Plan, units
from kernelviz.text.sizes import format_problem
from kernelviz.text.text import Text


def describe_outdated(displayed: Plan | None, measured: Plan) -> Text:
    """Which plan the results on the page are of (None: there are none), and which one is being measured.

    >>> from kernelviz.core import Problem
    >>> at = lambda n: Plan(problems=(Problem(op="add", sizes={"n": n}, dtype="fp32"),), variants=("torch_eager",),
    ...                     device="cpu", baseline="torch_eager")
    >>> print(describe_outdated(at(4096), at(8192)))
    Shown: add fp32 n = 4,096. Being measured: add fp32 n = 8,192.
    >>> print(describe_outdated(at(4096), at(4096)))
    Shown: the last result. Being measured: add fp32 n = 4,096, with the variants of the form.
    >>> print(describe_outdated(None, at(8192)))
    Being measured: add fp32 n = 8,192.
    """
    new = _describe(measured)
    if displayed is None:
        return Text(f"Being measured: {new}.")
    old = _describe(displayed)
    if old == new:
        return Text(f"Shown: the last result. Being measured: {new}, with the variants of the form.")
    return Text(f"Shown: {old}. Being measured: {new}.")


def _describe(plan: Plan) -> str:
    first, count = plan.problems[0], len(plan.problems)
    rest = f" and {units.counted(count - 1, 'other size')}" if count > 1 else ""
    return f"{format_problem(first)}{rest}"
