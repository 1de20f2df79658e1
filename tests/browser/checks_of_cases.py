"""Which times, rates, shares and verdicts of the page Bench contradict each other: in the table, the charts and the list.

A check knows nothing of how the product computes: it compares what a reader sees, and allows what intervals and rounding allow.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from screen import TIME, Dot, Line, Screen, Size

_VERDICT = re.compile(r"[▲▼] ([\d.]+)× (faster|slower) \(([\d.]+)–([\d.]+)\)")
_SAME = re.compile(r"= same \(within ([\d.]+) %\)")
_SHARED = re.compile(r"in the rounds of both: ([\d.]+ \w?s) against ([\d.]+ \w?s)")
_LENGTHS_S = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
CLOSE = 2e-4
"""Four digits and a sixth one in Plotly's data: values of the same number on two parts of the page differ by less."""


@dataclass(frozen=True)
class Verdict:
    """A verdict as the table says it: `ratio` is the time over the baseline's, None if the text has no number."""

    kind: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None


def verdict_of(text: str) -> Verdict:
    """The verdict of a cell or a list item."""
    if found := _VERDICT.search(text):
        factor, low, high = (float(found[i]) for i in (1, 3, 4))
        return (
            Verdict("slower", factor, low, high)
            if found[2] == "slower"
            else Verdict("faster", 1 / factor, 1 / high, 1 / low if low else math.inf)
        )
    if found := _SAME.search(text):
        within = float(found[1]) / 100
        return Verdict("same", None, 1 / (1 + within), 1 + within)
    return Verdict("unclear" if "unclear" in text else "")


def seconds(text: str) -> float:
    """A time with its unit in seconds."""
    found = TIME.search(text)
    assert found is not None, text
    return float(found[1]) * _LENGTHS_S[found[2]]


def name_of(line: Line) -> str:
    return f"{line.variant} at {dict(sorted(line.size))}"


def _apart(first: float, second: float) -> float:
    return abs(math.log(first / second)) if first > 0 and second > 0 else math.inf


def pairs_of(screen: Screen) -> Iterator[tuple[Line, Line]]:
    """Each case with the baseline's at the same size."""
    bases = {line.size: line for line in screen.lines if line.variant == screen.baseline}
    for line in screen.lines:
        if line.variant != screen.baseline and line.size in bases and not line.failed:
            yield line, bases[line.size]


def speed_up_is_the_ratio_of_the_shown_times(screen: Screen) -> Iterator[str]:
    """A reader divides the two times. The verdict may differ by what the three intervals allow together; if it differs by more,
    the cell has to name the times of the shared rounds, and those have to have the ratio."""
    for line, base in pairs_of(screen):
        verdict = verdict_of(line.versus)
        shared = _SHARED.search(line.versus)
        if verdict.low is None or verdict.high is None:
            continue
        if shared is not None:
            ratio = seconds(shared[1]) / seconds(shared[2])
            if not verdict.low * 0.97 <= ratio <= verdict.high * 1.03:
                yield f"{name_of(line)}: {line.versus}"
            continue
        if line.time_s is None or base.time_s is None or line.width is None or base.width is None:
            continue
        ratio = line.time_s / base.time_s
        widths = line.width, base.width
        if verdict.ratio is None:
            allowed = math.log(verdict.high) + math.hypot(*widths) + 0.005
            apart = abs(math.log(ratio))
        else:
            half = (verdict.high - verdict.low) / 2 / verdict.ratio
            allowed = math.hypot(*widths, half, 0.005) + 0.005 / min(verdict.ratio, 1 / verdict.ratio, 1.0) * 1.0
            apart = _apart(ratio, verdict.ratio)
        if apart > allowed:
            yield f"{name_of(line)}: {line.time_s:.4g} s, baseline {base.time_s:.4g} s ({ratio:.3g}), beside {line.versus}"


def reason_without_a_verdict_is_true(screen: Screen) -> Iterator[str]:
    """Where a case is not compared with the baseline, the cell must not blame the baseline if that has a time."""
    for line, base in pairs_of(screen):
        if line.versus == "the baseline has no time" and base.timed:
            yield f"{name_of(line)}: {line.versus}, and the baseline took {base.time_s}"
        if line.timed and base.timed and not verdict_of(line.versus).kind:
            yield f"{name_of(line)} and the baseline have times, but the verdict is {line.versus!r}"


def interval_of_a_verdict_holds_its_ratio(screen: Screen) -> Iterator[str]:
    """An estimate lies inside its interval, and the sign says on which side of 1 it is."""
    for line in screen.lines:
        verdict = verdict_of(line.versus)
        if verdict.ratio is None or verdict.low is None or verdict.high is None:
            continue
        if not verdict.low * 0.99 <= verdict.ratio <= verdict.high * 1.01 or (
            _apart(verdict.ratio, 1) > 0.005 and (verdict.ratio > 1) != (verdict.kind == "slower")
        ):
            yield f"{name_of(line)}: {line.versus}"


def same_work_at_a_size(screen: Screen) -> Iterator[str]:
    """All variants at a size do the same work under the same roof: time × bandwidth, time × rate and time × share are one number
    for each size."""
    for what in ("bandwidth", "rate", "share"):
        work: dict[Size, tuple[float, Line]] = {}
        for line in screen.lines:
            value = getattr(line, what)
            if value and line.time_s is not None:
                first, of = work.setdefault(line.size, (value * line.time_s, line))
                if _apart(first, value * line.time_s) > 0.005 / min(100 * min(1, abs(value)), 1) * CLOSE + CLOSE:
                    yield f"{what} × time of {name_of(line)} is {value * line.time_s:.5g}, of {of.variant} {first:.5g}"


def unstable_time_is_no_number(screen: Screen) -> Iterator[str]:
    """Of a time with two levels, the one that counts is unknown: no part of the page gives one number of it, or one that follows
    from it."""
    unstable = {(line.variant, line.size) for line in screen.lines if line.unstable}
    for line in screen.lines:
        values = line.time_s, line.width, line.bandwidth, line.rate, line.share
        if line.unstable and any(value is not None for value in values):
            yield f"table: {name_of(line)} is not stable, but has {values}"
        if not line.unstable and not line.failed and line.time_s is None and line.quality != "not timed":
            yield f"table: {name_of(line)} has neither a time nor a reason: {line.quality}"
    for place, dots in (("bars", screen.bars), ("by size", screen.by_size), ("roofline", screen.roofline)):
        for dot in dots:
            if (dot.variant, dot.size) not in unstable:
                continue
            if place == "by size" and screen.by_size_quantity == "speed-up":
                continue  # two times that changed together have a ratio
            if "not stable" not in dot.text:
                yield f"{place}: {dot.variant} at {dict(sorted(dot.size))} is not stable, but it says {dot.text!r}"
            elif re.search(r"\d [GM]B/s|\d [GTM]?FLOP/s|\d % of the measured", dot.text):
                yield f"{place}: a rate of a time that is not stable: {dot.text!r}"
    for cell in screen.winners:
        for name, size in unstable:
            if size == cell.size and re.search(rf"^{re.escape(name)}: (?!.*not stable)", cell.text, re.M):
                yield f"winners: {name} is not stable: {cell.text!r}"
            if size == cell.size and re.search(rf"^{re.escape(name)} takes [\d.]+× the time$", cell.text, re.M):
                yield f"winners: a ratio of a time that is not stable: {cell.text!r}"


def charts_and_table_show_the_same(screen: Screen) -> Iterator[str]:
    """Bars, chart by size, roofline and table show one measurement."""
    lines = {(line.variant, line.size): line for line in screen.lines}
    quantity = {"time": "time_s", "bandwidth": "bandwidth", "rate": "rate"}.get(screen.by_size_quantity)
    places: list[tuple[str, Sequence[Dot], str | None]] = [
        ("bars", screen.bars, "time_s"), ("by size", screen.by_size, quantity), ("roofline", screen.roofline, "rate"),
    ]  # fmt: skip
    for place, dots, what in places:
        for dot in dots:
            line = lines.get((dot.variant, dot.size))
            if line is None or line.failed:
                if line is None:
                    yield f"{place}: {dot.variant} at {dict(dot.size)} is not in the table"
                continue
            value = getattr(line, what) if what else None
            if value is not None and _apart(value, dot.value) > CLOSE:
                yield f"{place}: {name_of(line)} has {dot.value:.6g}, the table {value:.6g}"
            if (
                line.time_s is not None
                and (found := TIME.search(dot.text))
                and _apart(seconds(found[0]), line.time_s) > 6e-4
            ):
                yield f"{place}: {name_of(line)} says {found[0]}, the table {line.time_s:.6g} s"
            shares = re.findall(r"([\d.]+) % of the measured roof", dot.text) or (
                re.findall(r"· ([\d.]+) %$", dot.text) if place == "bars" else []
            )
            if (
                line.share is not None
                and shares
                and abs(float(shares[0]) / 100 - line.share) > (0.0051 if line.share > 0.0094 else 0.00051)
            ):
                yield f"{place}: {name_of(line)} has {shares[0]} % of the roof, the table {line.share:.2%}"
            verdict = line.versus.partition(";")[0]
            if (
                re.search(r"[▲▼?] |= same", dot.text)
                and verdict
                and line.variant != screen.baseline
                and verdict not in " ".join(dot.text.split())
            ):
                yield f"{place}: {name_of(line)} says {dot.text!r}, the table {verdict!r}"
    if screen.bars and screen.lines:
        at = screen.bars[0].size
        missing = [
            line.variant
            for line in screen.lines
            if line.size == at and line.variant not in {b.variant for b in screen.bars}
        ]
        if missing:
            yield f"bars lack {missing}"


def list_and_table_say_the_same(screen: Screen) -> Iterator[str]:
    """The list below the bars repeats time and verdict of the table at the size of the bars."""
    if not screen.bars:
        return
    at = screen.bars[0].size
    for line in (one for one in screen.lines if one.size == at and one.timed):
        said = next((s for s in screen.compared if s.strip().startswith(line.variant + " ")), None)
        if said is None:
            if line.timed:
                yield f"the list lacks {name_of(line)}"
            continue
        first = said.strip().split("\n")[0]
        if line.versus and line.versus not in " ".join(said.split()):
            yield f"{name_of(line)}: the list says {first!r}, the table {line.versus!r}"
        found = TIME.search(first)
        if line.time_s is not None and found and _apart(seconds(found[0]), line.time_s) > 6e-4:
            yield f"{name_of(line)}: the list says {found[0]}, the table {line.time_s:.6g} s"
        if line.unstable and "not stable" not in first:
            yield f"{name_of(line)} is not stable, the list says {first!r}"


def share_is_rate_over_roof(screen: Screen) -> Iterator[str]:
    """The roof in the chart by size is what the table's share refers to: share = value / roof."""
    roof = {dot.size: dot.value for dot in screen.roof}
    whats = {"bandwidth": "bandwidth", "rate": "rate", "time": "time_s"}
    what = whats.get(screen.by_size_quantity)
    if what is None:
        return
    for line in screen.lines:
        value = getattr(line, what)
        if line.size in roof and line.share and value:
            share = roof[line.size] / value if what == "time_s" else value / roof[line.size]
            if _apart(share, line.share) > CLOSE + 0.0005 / (line.share * 100):
                yield f"{name_of(line)}: {value:.5g} of a roof of {roof[line.size]:.5g} is not {line.share:.2%}"


def shares_above_the_roof_are_explained(screen: Screen) -> Iterator[str]:
    """A share above 100 % looks like an error, so the page counts them and says how far they go."""
    above = [line.share for line in screen.lines if line.share is not None and line.share > 1]
    said = next(
        (
            re.search(r"(\d+) cases? above 100 % of the roof \(up to ([\d.]+) %\)", c)
            for c in screen.captions
            if "above 100 %" in c
        ),
        None,
    )
    if not screen.lines:
        return
    if bool(above) != (said is not None):
        yield f"{len(above)} shares above 100 %, and the caption says {said and said[0]}"
    elif said and (int(said[1]) != len(above) or abs(float(said[2]) / 100 - max(above)) > 0.00051):
        yield f"{len(above)} shares above 100 % (up to {max(above):.1%}), and the caption says {said[0]}"
