"""google-benchmark's JSON as runs: one for each set of named arguments, a variant a family, a case a name.

The format: https://github.com/google/benchmark/blob/main/src/json_reporter.cc. Its names repeat for repetitions, aggregates
follow under names of their own, and a time that is not finite stands there bare (NaN).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import PureWindowsPath
from statistics import median

import msgspec

from kernelviz.core import moments
from kernelviz.core.errors import DocumentError
from kernelviz.core.problem import Struct
from kernelviz.core.result import Failure, Figure, Outcome, Result, Timer, Timing
from kernelviz.core.run import Device, Run
from kernelviz.formats import document, foreign
from kernelviz.formats.check import MAX_SIZE
from kernelviz.formats.importing import Import

TOOL = "google-benchmark"
_UNIT_S = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_ARGUMENT = re.compile(r"(?:([^:\s/]+):)?(\d{1,19})")
_NOT_SIZES = frozenset({"iterations", "repeats", "min_time", "min_warmup_time"})
_KINDS = {"real": "real time", "cpu": "CPU time"}
_COMPLEXITY = frozenset({"BigO", "RMS"})


class _Cache(Struct, frozen=True, kw_only=True):
    level: int | None = None
    size: int | None = None


class _Context(Struct, frozen=True, kw_only=True):
    date: str | None = None
    host_name: str | None = None
    executable: str | None = None
    num_cpus: int | None = None
    mhz_per_cpu: float | None = None
    caches: tuple[_Cache, ...] | None = None
    library_version: str | None = None


class _Entry(Struct, frozen=True, kw_only=True):
    name: str
    run_name: str | None = None
    run_type: str | None = None
    aggregate_name: str | None = None
    aggregate_unit: str | None = None
    iterations: float | None = None
    real_time: float | None = None
    cpu_time: float | None = None
    time_unit: str | None = None
    error_occurred: bool = False
    error_message: str | None = None
    skipped: bool = False
    skip_message: str | None = None

    @property
    def is_aggregate(self) -> bool:
        return self.run_type == "aggregate"

    @property
    def case(self) -> str:
        """The name that repetitions and aggregates of one benchmark share."""
        if self.run_name is not None:
            return self.run_name
        suffix = f"_{self.aggregate_name}" if self.is_aggregate and self.aggregate_name else ""
        return self.name.removesuffix(suffix)


class _File(Struct, frozen=True, kw_only=True):
    context: _Context
    benchmarks: tuple[_Entry, ...]


def decode(raw: bytes) -> tuple[Run, ...]:
    """Errors: DocumentError with the path of the field."""
    try:
        file = msgspec.json.decode(raw, type=_File)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise document.document_error(error) from None
    entries: dict[str, list[tuple[int, _Entry]]] = {}
    for i, entry in enumerate(file.benchmarks):
        entries.setdefault(entry.case, []).append((i, entry))
    op = PureWindowsPath(file.context.executable or "").name or foreign.UNKNOWN
    groups: dict[tuple[str, ...], list[Result]] = {}
    untimed: list[str] = []
    for case, found in entries.items():
        variant, sizes = named(case)
        outcome = _outcome(found)
        if outcome is None:
            untimed.append(case)
            continue
        one = Result(
            problem=foreign.problem(op, sizes), variant=variant, outcome=outcome, measured_at=_date(file.context)
        )
        groups.setdefault(tuple(sizes), []).append(one)
    if not groups:
        raise DocumentError("no benchmark in it has a time", path="$.benchmarks")
    return tuple(_run(file.context, op, axes, results, untimed) for axes, results in groups.items())


def named(case: str) -> tuple[str, dict[str, int]]:
    """Variant and sizes that a name tells: its whole-number arguments are sizes, by their names where they have one.

    >>> named("BM_copy/1024/8"), named("BM_copy/n:64/threads:4/real_time"), named("BM_copy/0")
    (('BM_copy', {'arg1': 1024, 'arg2': 8}), ('BM_copy/real_time', {'n': 64, 'threads': 4}), ('BM_copy/0', {}))
    """
    family, *rest = case.split("/")
    kept, sizes = [family], {}
    for place, part in enumerate(rest, 1):
        found = _ARGUMENT.fullmatch(part)
        axis = (found[1] or f"arg{place}") if found else ""
        if found and axis not in _NOT_SIZES and axis not in sizes and 1 <= int(found[2]) <= MAX_SIZE:
            sizes[axis] = int(found[2])
        else:
            kept.append(part)
    return "/".join(kept), sizes


def _outcome(found: Sequence[tuple[int, _Entry]]) -> Outcome | None:
    """What became of a case; None where its entries hold no time."""
    for _, entry in found:
        if entry.error_occurred:
            return Failure(
                stage="crash", message=entry.error_message or "an error, of which the file does not say more"
            )
        if entry.skipped:
            return Failure(stage="unavailable", message=f"skipped: {entry.skip_message or 'no reason is given'}")
    times = {name: figure for kind, words in _KINDS.items() for name, figure in _figures(found, kind, words).items()}
    return Timing(other_times=times) if times else None


def _figures(found: Sequence[tuple[int, _Entry]], kind: str, words: str) -> dict[str, Figure]:
    """The repetitions as one figure, and every aggregate that says more than they do, by what people call it."""
    singles = [(e, s) for i, e in found if not e.is_aggregate and (s := _seconds(i, e, kind)) is not None]
    aggregates = [(e, s) for i, e in found if e.is_aggregate and (s := _seconds(i, e, kind)) is not None]
    named_ones = {e.aggregate_name: s for e, s in aggregates if e.aggregate_name}
    timer: Timer | None = None if kind == "cpu" or any("manual_time" in e.case.split("/") for _, e in found) else "host"
    figures: dict[str, Figure] = {}
    if singles:
        calls = {e.iterations for e, _ in singles}
        of = (
            f"the mean of {next(iter(calls)):.0f} calls" if len(calls) == 1 and None not in calls else "a mean of calls"
        )
        times = tuple(s for _, s in singles)
        many = f"median of {len(times)} repetitions, each {of}" if len(times) > 1 else of
        figures[words] = Figure(
            estimate=named_ones.get("median", median(times)),
            samples=times if len(times) > 1 else None,
            timer=timer,
            method=f"{TOOL}: {many}",
        )
    for number, (entry, time_s) in enumerate(aggregates, 1):
        what = entry.aggregate_name
        if what == "stddev" or (singles and what in ("mean", "median")):
            continue
        if what is None:
            what = f"aggregate {number} of {len(aggregates)}, of which the file does not say what it is"
            name = words if number == 1 and not singles else f"{words}, aggregate {number}"
        else:
            name = words if what == "median" else f"{words}, {what}"
            what = f"{what} of repetitions"
        figures[name] = Figure(estimate=time_s, timer=timer, method=f"{TOOL}: {what}")
    return figures


def _seconds(i: int, entry: _Entry, kind: str) -> float | None:
    """A time of an entry; None where it has none: a fitted complexity, a percentage, null. Errors: DocumentError."""
    if entry.aggregate_name in _COMPLEXITY or entry.aggregate_unit == "percentage" or entry.aggregate_name == "cv":
        return None
    path = f"$.benchmarks[{i}]"
    unit = entry.time_unit or "ns"
    if unit not in _UNIT_S:
        raise DocumentError(f"{unit[:40]!r} is no unit of time (s, ms, us, ns)", path=f"{path}.time_unit")
    value: float | None = getattr(entry, f"{kind}_time")
    return foreign.seconds(None if value is None else value * _UNIT_S[unit], f"{path}.{kind}_time")


def _run(context: _Context, op: str, axes: tuple[str, ...], results: Sequence[Result], untimed: Sequence[str]) -> Run:
    over = f" over {', '.join(axes)}" if axes else ""
    left_out = f" Left out, since they hold no time: {', '.join(untimed)[:400]}." if untimed else ""
    return foreign.run_of(
        tool=TOOL,
        op=op,
        title=f"{TOOL}: {op}{over}" if op != foreign.UNKNOWN else f"{TOOL}{over}",
        note=f"Read from a {TOOL} file. It says neither number format nor cost nor whether results were right.{left_out}",
        device=_device(context),
        host=context.host_name or foreign.UNKNOWN_MACHINE,
        versions={TOOL: context.library_version} if context.library_version else {},
        created_at=_date(context) or "",
        results=results,
        path="$.benchmarks",
    )


def _device(context: _Context) -> Device:
    known = [
        f"{context.num_cpus} CPUs" if context.num_cpus else "",
        f"at {context.mhz_per_cpu:.0f} MHz" if context.mhz_per_cpu else "",
    ]
    words = " ".join(w for w in known if w)
    name = f"unknown processor, {words}" if words else "unknown processor"
    caches = [(c.level, c.size) for c in context.caches or () if c.level is not None and c.size]
    return Device(
        id="cpu",
        kind="cpu",
        name=name,
        uuid=f"{TOOL} {context.host_name or foreign.UNKNOWN} {name}",
        last_level_cache_bytes=max(caches)[1] if caches else None,
        threads=context.num_cpus,
    )


def _date(context: _Context) -> str | None:
    """When the file says that it was measured; in UTC where it says of which zone that is."""
    if context.date is None:
        return None
    try:
        moment = datetime.fromisoformat(context.date)
    except ValueError:
        return context.date[:40] or None
    return moments.iso(moment, "seconds") if moment.tzinfo else moment.isoformat(timespec="seconds")


IMPORT = Import(
    name="gbench",
    words="google-benchmark JSON",
    recognises=lambda seen: {"context", "benchmarks"} <= seen.keys and "devices" not in seen.keys,
    decode=decode,
)
