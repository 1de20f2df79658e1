"""Import of JSON of google-benchmark: one run for each set of argument names, one variant per family, one case per name.

The format is that of https://github.com/google/benchmark/blob/main/src/json_reporter.cc. Repetitions share a name, aggregates
have names of their own, and a time that is not finite is written as the bare word NaN.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import PureWindowsPath
from statistics import median
from typing import Any

import msgspec

from kernelviz.core import (
    Device,
    DocumentError,
    Failure,
    Figure,
    Outcome,
    Result,
    Run,
    Struct,
    Timer,
    Timing,
    timestamps,
)
from kernelviz.core.reasons import Skipped
from kernelviz.formats import document, foreign
from kernelviz.formats.import_format import MAX_RUNS, Import, check_count
from kernelviz.formats.validation import MAX_CASES, MAX_SIZE
from kernelviz.metrics.grouping import grouped

TOOL = "google-benchmark"
_UNIT_S = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_ARGUMENT = re.compile(r"(?:([^:\s/]+):)?(\d{1,19})")
_NOT_SIZES = frozenset({"iterations", "repeats", "min_time", "min_warmup_time"})
_KINDS = {"real": "real time", "cpu": "CPU time"}
_COMPLEXITY = frozenset({"BigO", "RMS"})
_OLD_AGGREGATES = frozenset({"mean", "median", "stddev", "cv"})


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
    # Counters of a user are in the same object and may have the names of these fields, so any type must be accepted.
    error_occurred: Any = None
    error_message: Any = None
    skipped: Any = None
    skip_message: Any = None

    @property
    def is_aggregate(self) -> bool:
        return self.run_type == "aggregate"

    @property
    def case(self) -> str:
        """The name that repetitions and aggregates of one benchmark share."""
        suffix = f"_{self.aggregate_name}" if self.is_aggregate and self.aggregate_name else ""
        return self.name.removesuffix(suffix) if self.run_name is None else self.run_name


class _File(Struct, frozen=True, kw_only=True):
    context: _Context
    benchmarks: tuple[_Entry, ...]


class _Counted(Struct, frozen=True, kw_only=True):
    """The same file; decoding it so is quick and takes little memory."""

    benchmarks: tuple[msgspec.Raw, ...]


def decode(raw: bytes) -> tuple[Run, ...]:
    """The runs of a file of google-benchmark. Errors: DocumentError with the path of the field."""
    check_count(len(document.from_json(raw, _Counted).benchmarks), MAX_CASES, "benchmarks", "$.benchmarks")
    file = document.from_json(raw, _File)
    entries = grouped(enumerate(_with_aggregates(file.benchmarks)), key=lambda numbered: numbered[1].case)
    op = PureWindowsPath(file.context.executable or "").name or foreign.UNKNOWN
    results: list[Result] = []
    untimed: list[str] = []
    odd: list[str] = []
    seen: set[tuple[str, tuple[tuple[str, int], ...]]] = set()
    for case, entries_of_case in entries.items():
        variant, sizes = named(case)
        if (variant, tuple(sizes.items())) in seen:  # BM/08 beside BM/8
            variant = case
        seen.add((variant, tuple(sizes.items())))
        outcome = _outcome(entries_of_case, odd)
        if outcome is None:
            untimed.append(case)
        else:
            problem = foreign.problem(op, sizes)
            results.append(Result(problem=problem, variant=variant, outcome=outcome, measured_at=_date(file.context)))
    if not results:
        because = f": {'; '.join(odd)[:400]}" if odd else ""
        raise DocumentError(f"no benchmark in it has a time{because}", path="$.benchmarks")
    remarks = [f" Left out because they have no time: {', '.join(untimed)[:400]}."] if untimed else []
    remarks += [f" Left out because these times are impossible: {'; '.join(odd)[:400]}."] if odd else []
    groups = grouped(results, key=lambda result: tuple(result.problem.sizes))
    check_count(len(groups), MAX_RUNS, "runs (one for each set of names of arguments)", "$.benchmarks")
    return tuple(_run(file.context, op, axes, group, "".join(remarks)) for axes, group in groups.items())


def _with_aggregates(entries: Sequence[_Entry]) -> Iterator[_Entry]:
    """The entries, with the aggregates of versions up to 1.4 marked as such.

    These versions mark an aggregate only by its name: that of a repeated benchmark followed by, for example, ``_mean``. The name
    must occur once.
    """
    times = Counter(e.name for e in entries if e.run_type is None)
    for entry in entries:
        base, _, what = entry.name.rpartition("_")
        if entry.run_type is None and what in _OLD_AGGREGATES and times[entry.name] == 1 and times[base] > 1:
            yield msgspec.structs.replace(entry, run_type="aggregate", aggregate_name=what)
        else:
            yield entry


def named(case: str) -> tuple[str, dict[str, int]]:
    """The variant and the sizes in a name. Whole-number arguments are sizes; one without a name is ``arg1``, ``arg2``, …

    >>> named("BM_copy/1024/8"), named("BM_copy/n:64/threads:4/real_time"), named("BM_copy/0")
    (('BM_copy', {'arg1': 1024, 'arg2': 8}), ('BM_copy/real_time', {'n': 64, 'threads': 4}), ('BM_copy/0', {}))
    """
    family, *rest = case.split("/")
    parts, sizes = [family], {}
    for place, part in enumerate(rest, 1):
        match = _ARGUMENT.fullmatch(part)
        axis = (match[1] or f"arg{place}") if match else ""
        if match and axis not in _NOT_SIZES and axis not in sizes and 1 <= int(match[2]) <= MAX_SIZE:
            sizes[axis] = int(match[2])
        else:
            parts.append(part)
    return "/".join(parts), sizes


def _outcome(entries: Sequence[tuple[int, _Entry]], odd: list[str]) -> Outcome | None:
    """The outcome of a case; None if its entries have no time. Impossible times are added to `odd`."""
    for _, entry in entries:
        if entry.error_occurred is True:
            said = _text(entry.error_message) or "an error, of which the file does not say more"
            return Failure(stage="crash", message=said)
        if entry.skipped is True:
            return Failure(stage="unavailable", reasons=(Skipped(),), message=_text(entry.skip_message) or "")
    times = {n: f for kind, label in _KINDS.items() for n, f in _figures(entries, kind, label, odd).items()}
    return Timing(other_times=times) if times else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _figures(entries: Sequence[tuple[int, _Entry]], kind: str, label: str, odd: list[str]) -> dict[str, Figure]:
    """The times by name: the repetitions as one figure, and every aggregate that adds information to them."""
    timed = [(e, s) for i, e in entries if (s := _seconds(i, e, kind, odd)) is not None]
    singles, aggregates = ([(e, s) for e, s in timed if e.is_aggregate is aggregate] for aggregate in (False, True))
    named_ones = {e.aggregate_name: s for e, s in aggregates if e.aggregate_name}
    manual = any("manual_time" in e.case.split("/") for _, e in entries)
    timer: Timer | None = None if kind == "cpu" or manual else "host"
    figures: dict[str, Figure] = {}
    if singles:
        calls = {e.iterations for e, _ in singles}
        of = (
            f"the mean of {next(iter(calls)):.0f} calls" if len(calls) == 1 and None not in calls else "a mean of calls"
        )
        times = tuple(s for _, s in singles)
        many = f"median of {len(times)} repetitions, each {of}" if len(times) > 1 else of
        figures[label] = Figure(
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
            name = label if number == 1 and not singles else f"{label}, aggregate {number}"
        else:
            name = label if what == "median" else f"{label}, {what}"
            what = f"{what} of repetitions"
        figures[name] = Figure(estimate=time_s, timer=timer, method=f"{TOOL}: {what}")
    return figures


def _seconds(i: int, entry: _Entry, kind: str, odd: list[str]) -> float | None:
    """The time of an entry, or None if it has none: a fitted complexity, a percentage, null or an impossible time.

    An impossible time is added to `odd`, for example a negative one after the time of an empty loop was subtracted. Errors:
    DocumentError for an unknown unit.
    """
    if entry.aggregate_name in _COMPLEXITY or entry.aggregate_unit == "percentage" or entry.aggregate_name == "cv":
        return None
    path = f"$.benchmarks[{i}]"
    unit = entry.time_unit or "ns"
    if unit not in _UNIT_S:
        raise DocumentError(f"{unit[:40]!r} is not a unit of time (s, ms, us, ns)", path=f"{path}.time_unit")
    value: float | None = getattr(entry, f"{kind}_time")
    try:
        return foreign.seconds(None if value is None else value * _UNIT_S[unit], f"{path}.{kind}_time")
    except DocumentError as error:
        if entry.aggregate_name != "stddev":  # a standard deviation is not the time of a call
            odd.append(f"{entry.name[:100]}, {_KINDS[kind]} ({error.reason})")
        return None


def _run(context: _Context, op: str, axes: tuple[str, ...], results: Sequence[Result], left_out: str) -> Run:
    over = f" over {', '.join(axes)}" if axes else ""
    return foreign.run_of(
        tool=TOOL,
        op=op,
        title=f"{TOOL}: {op}{over}" if op != foreign.UNKNOWN else f"{TOOL}{over}",
        note=f"Imported from a file of {TOOL}. The file does not contain the number format, the cost or the correctness of the "
        f"results.{left_out}",
        device=_device(context),
        host=context.host_name or foreign.UNKNOWN_MACHINE,
        versions={TOOL: context.library_version} if context.library_version else {},
        created_at=_date(context) or "",
        results=results,
        path="$.benchmarks",
    )


def _device(context: _Context) -> Device:
    cpus = [f"{context.num_cpus} CPUs"] if context.num_cpus else []
    clock = [f"at {context.mhz_per_cpu:.0f} MHz"] if context.mhz_per_cpu else []
    name = ", ".join(filter(None, ("unknown processor", " ".join(cpus + clock))))
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
    """The date of the measurement in the file, converted to UTC if the file contains the time zone."""
    if context.date is None:
        return None
    try:
        moment = datetime.fromisoformat(context.date)
        return timestamps.iso(moment, "seconds") if moment.tzinfo else moment.isoformat(timespec="seconds")
    except ValueError:
        return context.date[:40] or None
    except OverflowError:  # In UTC, the date would lie outside the years 1 to 9999.
        return None


IMPORT = Import(
    name="gbench",
    label="google-benchmark JSON",
    recognises=lambda seen: {"context", "benchmarks"} <= seen.keys and "devices" not in seen.keys,
    decode=decode,
)
