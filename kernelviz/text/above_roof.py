"""Shares of a roof above 100 %, in text: the reason, for one case and for a table."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from kernelviz.core import units
from kernelviz.metrics.above_roof import AboveRoof, AboveRoofKind
from kernelviz.text.roofs import format_bytes

_REASONS: Mapping[AboveRoofKind, str] = MappingProxyType(
    {
        "within_intervals": "100 % is inside the 95 % intervals of the time and the roof",
        "data_sheet": "the value of the data sheet is for another clock, or part of the data stayed in the cache",
        "warm_data": "part of the data is still in the cache, but the roof is that of DRAM",
        "last_writes": "the last writes stay in the cache, and are a larger part of a problem that moves less than the smallest "
        "measured stream ({stream})",
        "other_mix": "no roof was measured with the same mix of reads and writes",
        "faster_kernel": "faster than the kernel that measured the roof (calibrate again if the machine was busy then)",
    }
)


def describe_above_roof(above: AboveRoof) -> str:
    """The reason for one case.

    >>> describe_above_roof(AboveRoof("last_writes", 1.08, stream_bytes=126_000_000))
    'above 100 %: the last writes stay in the cache, and are a larger part of a problem that moves less than the smallest \
measured stream (126 MB)'
    """
    return f"above 100 %: {_reason(above)}"


def describe_above_roofs(above: Sequence[AboveRoof]) -> list[str]:
    """One line for each reason, with the number of cases and the largest share.

    >>> describe_above_roofs([AboveRoof("warm_data", 1.2), AboveRoof("warm_data", 1.5)])
    ['2 cases above 100 % of the roof (up to 150.0 %): part of the data is still in the cache, but the roof is that of DRAM']
    """
    lines: dict[str, list[AboveRoof]] = {}
    for one in above:
        lines.setdefault(_reason(one), []).append(one)
    return [f"{_count(alike)}: {reason}" for reason, alike in lines.items()]


def count_above_roofs(above: Sequence[AboveRoof]) -> str:
    """How many cases have a share above 100 %, and the largest share; empty if there are none.

    >>> count_above_roofs([AboveRoof("warm_data", 1.2), AboveRoof("other_mix", 1.5)]), count_above_roofs([])
    ('2 cases above 100 % of the roof (up to 150.0 %)', '')
    >>> count_above_roofs([AboveRoof("within_intervals", 1.0003)])
    '1 case above 100 % of the roof (by less than 0.1 %)'
    """
    return _count(above) if above else ""


def _count(above: Sequence[AboveRoof]) -> str:
    most = max(one.share_fraction for one in above)
    much = "by less than 0.1 %" if most < 1.001 else f"up to {units.percent(most)}"
    return f"{units.counted(len(above), 'case')} above 100 % of the roof ({much})"


def _reason(above: AboveRoof) -> str:
    stream = "" if above.stream_bytes is None else format_bytes(above.stream_bytes)
    return _REASONS[above.kind].format(stream=stream)
