"""Numbers and units as ncu writes them, in SI base units."""

import math
import re

from kernelviz.core import DocumentError
from kernelviz.core.counters import SECTOR_BYTES
from kernelviz.hardware.nsight_compute.metric_names import Quantity

_PREFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_TIMES = {
    "nsecond": 1e-9, "usecond": 1e-6, "msecond": 1e-3, "second": 1.0,
    "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0,
}  # fmt: skip
_FREQUENCIES = {"cycle/nsecond": 1e9, "cycle/usecond": 1e6, "cycle/msecond": 1e3, "cycle/second": 1.0}
_FREQUENCIES |= {"cycle/ns": 1e9, "cycle/us": 1e6, "cycle/ms": 1e3, "cycle/s": 1.0}
_PREFIXED = re.compile(r"([KMGTkmgt]?)(byte|hz|sector|request|register/thread|register)", re.IGNORECASE)
_NOUNS: dict[Quantity, tuple[str, ...]] = {
    "bytes": ("byte",),
    "frequency": ("hz",),
    "count": ("sector", "request", "register/thread", "register"),
    "sectors": ("sector",),
}
_NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?(?:[eE][+-]?\d{1,3})?")
_DECIMAL_COMMA = re.compile(r"[+-]?\d{1,3}(?:\.\d{3})*,\d+|[+-]?\d+,\d+")
_ABSENT = frozenset({"", "n/a", "nan", "-nan", "inf", "-inf", "no data", "(!) n/a", "(!) nan"})
LONGEST_NUMBER = 60
"""Characters of a value or a unit. ncu writes at most about 25."""
_UNITS: dict[Quantity, str] = {
    "time": "ns, us, ms, s, nsecond, usecond, msecond or second",
    "bytes": "byte, Kbyte, Mbyte, Gbyte or Tbyte",
    "frequency": "hz, Khz, Mhz, Ghz or cycle/second, cycle/usecond, cycle/nsecond",
    "count": "none, or what is counted",
    "sectors": "sector",
    "share": "%",
    "ratio": "any",
}
MOST = {"time": 1e9, "bytes": 1e18, "frequency": 1e12, "count": 1e18, "sectors": 1e18, "share": 2.0, "ratio": 1e6}
"""The largest possible value of a quantity, in base units. A hit rate may exceed 100 % a little, because two passes read it."""


def quantity(value: str, unit: str, kind: Quantity, path: str) -> float | None:
    """A value in base units; None where ncu wrote that it has none. Errors: DocumentError at `path`.

    >>> quantity("402.834432", "Mbyte", "bytes", ""), quantity("1,024", "ns", "time", ""), quantity("50", "%", "share", "")
    (402834432.0, 1.024e-06, 0.5)
    >>> quantity("n/a", "", "count", "") is None
    True
    """
    number = _number(value, path)
    if number is None:
        return None
    base = number * _scale(unit.strip(), kind, path)
    if not 0 <= base <= MOST[kind]:
        raise DocumentError(f"{value.strip()[:40]} {unit[:20]} is outside 0 to {MOST[kind]:g} in base units", path=path)
    return base


def _number(value: str, path: str) -> float | None:
    text = value.strip()
    if text.lower() in _ABSENT:
        return None
    if len(text) <= LONGEST_NUMBER and _NUMBER.fullmatch(text):
        number = float(text.replace(",", ""))
        if math.isfinite(number):
            return number
    if len(text) <= LONGEST_NUMBER and _DECIMAL_COMMA.fullmatch(text):
        raise DocumentError(
            f"{text!r} has a decimal comma, with which 1,234 would be ambiguous; run ncu with LC_ALL=C", path=path
        )
    raise DocumentError(f"{text[:40]!r} is not a number; write the file with `ncu --csv`", path=path)


def _scale(unit: str, kind: Quantity, path: str) -> float:
    if kind == "ratio":
        return 1.0
    if kind == "share" and unit == "%":
        return 0.01
    if kind == "time" and unit in _TIMES:
        return _TIMES[unit]
    if kind == "frequency" and unit in _FREQUENCIES:
        return _FREQUENCIES[unit]
    if kind in ("count", "sectors") and not unit:
        return SECTOR_BYTES if kind == "sectors" else 1.0
    match = _PREFIXED.fullmatch(unit) if len(unit) <= LONGEST_NUMBER else None
    if match is not None and match[2].lower() in _NOUNS.get(kind, ()):
        return _PREFIXES[match[1].upper()] * (SECTOR_BYTES if kind == "sectors" else 1.0)
    raise DocumentError(
        f"the unit {unit[:40]!r} is not known for it; known are {_UNITS[kind]}. Write the file with `--print-units base`",
        path=path,
    )
