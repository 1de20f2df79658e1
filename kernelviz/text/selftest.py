"""Checks of the selftest in text: value, limit and outcome."""

from collections.abc import Callable, Mapping

from kernelviz.core import Check, units
from kernelviz.core.selftest import CheckUnit
from kernelviz.text.text import Text, join

_OUTCOMES = {True: Text("pass"), False: Text("FAIL"), None: Text("not here")}
_FORMATS: Mapping[CheckUnit | None, Callable[[float], str]] = {
    "s": units.seconds,
    "fraction": lambda value: units.percent(value, 2),
    "bytes_per_s": units.gigabytes_per_s,
    "hz": units.clock,
    "count": "{:g}".format,
    None: "{:g}".format,
}


def amount(value: float | None, unit: CheckUnit | None) -> Text:
    """A value of a check with its unit.

    >>> print(amount(1.2e-6, "s"), amount(0.0031, "fraction"), amount(4.3e12, "bytes_per_s"), amount(None, "s"), sep=", ")
    1.200 µs, 0.31 %, 4300 GB/s, –
    """
    return Text("–" if value is None else _FORMATS[unit](value))


def format_outcome(check: Check) -> Text:
    """Whether the check passed, failed, or could not be made on this machine."""
    return _OUTCOMES[check.passed]


def format_limit(check: Check) -> Text:
    """The limit that the value is compared with. Empty without one.

    >>> str(format_limit(Check(name="a", question="", passed=True, value=0.1, limit=0.03, unit="fraction")))
    'at most 3.00 %'
    """
    if check.limit is None:
        return Text("")
    return Text(f"{'at most' if check.at_most else 'at least'} {amount(check.limit, check.unit)}")


def describe_check(check: Check) -> Text:
    """A check on one line.

    >>> str(describe_check(Check(name="a", question="", passed=True, value=1e-6, limit=1.5e-6, unit="s")))
    'pass: 1.000 µs (at most 1.500 µs)'
    >>> str(describe_check(Check(name="a", question="", passed=None, message="ncu is not on the PATH")))
    'not here: ncu is not on the PATH'
    """
    limit = "" if check.limit is None else f" ({format_limit(check)})"
    value = "" if check.value is None else f"{amount(check.value, check.unit)}{limit}"
    return join(": ", (format_outcome(check), join("; ", (value, check.message))))
