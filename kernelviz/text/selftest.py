"""Checks of the selftest in words: value, limit and how it went."""

from kernelviz.core import Check, units
from kernelviz.core.selftest import CheckUnit


def amount(value: float | None, unit: CheckUnit | None) -> str:
    """A value of a check for people.

    >>> amount(1.2e-6, "s"), amount(0.0031, "fraction"), amount(4.3e12, "bytes_per_s"), amount(1.0, "count")
    ('1.200 µs', '0.31 %', '4300 GB/s', '1')
    >>> amount(None, "s")
    '–'
    """
    if value is None:
        return "–"
    match unit:
        case "s":
            return units.seconds(value)
        case "fraction":
            return units.percent(value, 2)
        case "bytes_per_s":
            return units.gigabytes_per_s(value)
        case "hz":
            return units.clock(value)
        case "count" | None:
            return f"{value:g}"


def format_outcome(check: Check) -> str:
    """How it went: passed, failed, or not made here."""
    return {True: "pass", False: "FAIL", None: "not here"}[check.passed]


def format_limit(check: Check) -> str:
    """What the value is held against.

    >>> format_limit(Check(name="a", question="", passed=True, value=0.1, limit=0.03, unit="fraction"))
    'at most 3.00 %'
    """
    if check.limit is None:
        return ""
    return f"{'at most' if check.at_most else 'at least'} {amount(check.limit, check.unit)}"


def describe_check(check: Check) -> str:
    """A check on one line.

    >>> describe_check(Check(name="a", question="", passed=True, value=1e-6, limit=1.5e-6, unit="s"))
    'pass: 1.000 µs (at most 1.500 µs)'
    >>> describe_check(Check(name="a", question="", passed=None, message="ncu is not on the PATH"))
    'not here: ncu is not on the PATH'
    """
    said = format_outcome(check)
    if check.value is not None:
        limit = format_limit(check)
        said += f": {amount(check.value, check.unit)}" + (f" ({limit})" if limit else "")
    return f"{said}{'; ' if check.value is not None else ': '}{check.message}" if check.message else said
