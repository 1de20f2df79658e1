"""A tuning in text, and as plain values."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

import msgspec

from kernelviz.core import Plan, Run, Search, Span, Tuning, units
from kernelviz.core.configuration import configuration_text, parted
from kernelviz.core.reasons import NeedMissing
from kernelviz.metrics.rows import Row
from kernelviz.metrics.tuning import Reason, Tried, speed_up_span, stopped_early
from kernelviz.text.configurations import format_speed_up
from kernelviz.text.failures import describe_failure, describe_reason, format_failure
from kernelviz.text.text import Text, join, on_one_line, sentence_case

_MOST_VALUES = 6


def describe_search(tried: Tried, search: Search | None) -> Text:
    """How many configurations were tried, and how many of them have no time, or that of one block."""
    sample = ""
    if search is not None and search.seed is not None:
        sample = f" drawn with seed {search.seed} from {search.admitted} that make sense"
    without_time = {
        "failed": tried.failed,
        "stopped after one block": tried.stopped,
        "not for such sizes": tried.refused,
        "cancelled": tried.cancelled,
    }
    return join(
        ", ",
        (
            f"{tried.tried} of {tried.planned} configurations tried{sample}",
            f"the space has {tried.space}",
            *(f"{count} {what}" for what, count in without_time.items() if count),
        ),
    )


def describe_space(space: Mapping[str, Sequence[int]]) -> Text:
    """The parameters with their values.

    >>> print(describe_space({"block": (256, 512), "warps": (4, 8)}))
    Parameters, the default value first: block (256, 512), warps (4, 8).
    """
    listed = ", ".join(f"{key} ({_listed(values)})" for key, values in space.items())
    return Text(f"Parameters, the default value first: {listed}.")


def _listed(values: Sequence[int]) -> str:
    return (
        ", ".join(map(str, values))
        if len(values) <= _MOST_VALUES
        else f"{values[0]}, {values[1]}, … {len(values)} values"
    )


class _Example(Protocol):
    @property
    def tuning(self) -> Tuning: ...

    @property
    def same(self) -> Literal["problem", "variant", "op", "device"]: ...

    @property
    def each_s(self) -> float: ...


class Cost(Protocol):
    """What a tuning takes of the device (`bench.tunings.TuningCost`)."""

    @property
    def sweep_s(self) -> float: ...

    @property
    def final_s(self) -> float: ...

    @property
    def expected_s(self) -> float | None: ...

    @property
    def example(self) -> _Example | None: ...


def describe_plan(plan: Plan, cost: Cost) -> Text:
    """What a tuning would measure, and how long it takes."""
    search, count = plan.search, len(plan.variants)
    if search is None:
        return Text("")
    of = f" of {search.admitted}" if search.admitted is not None and search.admitted != count else ""
    which = "" if search.seed is None else f", drawn with seed {search.seed}"
    return Text(
        f"{count}{of} configurations that make sense at this size{which}; the space has {search.space}. {describe_expected(cost)}"
    )


def describe_expected(cost: Cost) -> Text:
    """How long a tuning takes: by a stored tuning of the device if there is one, else only what its budgets allow."""
    final = units.seconds(cost.final_s, 2)
    measuring = (
        f"the budgets allow {units.seconds(cost.sweep_s, 2)} of measuring, and {final} for the final of the best (more where one "
        "round of calls takes longer than its budget)"
    )
    example = cost.example
    if example is None or cost.expected_s is None:
        return Text(
            f"{sentence_case(measuring)}. Binding, compiling and the correctness checks are not in it, and can take much "
            "longer: no tuning is stored for this device by which they could be estimated."
        )
    of = {
        "problem": "the stored tuning of this problem",
        "variant": f"a stored tuning of {example.tuning.variant} at another size",
        "op": f"a stored tuning of {example.tuning.variant}",
        "device": f"a stored tuning of another op on this device ({example.tuning.problem.op} {example.tuning.variant})",
    }[example.same]
    return Text(
        f"It takes about {units.seconds(cost.expected_s, 2)} with binding, compiling and checks, by {of}, which took "
        f"{units.seconds(example.each_s, 2)} for each configuration; of this, {measuring}."
    )


class Offered(Protocol):
    """A variant with parameters, and what a device lacks for it."""

    @property
    def op(self) -> str: ...

    @property
    def lack(self) -> NeedMissing | None: ...


def describe_tunable(entries: Sequence[Offered], device: str) -> Text:
    """Which ops have a variant that can be tuned on the device, and what the others need."""
    ops = list(dict.fromkeys(one.op for one in entries))
    here = list(dict.fromkeys(one.op for one in entries if one.lack is None))
    lacks = Counter(str(describe_reason(one.lack)) for one in entries if one.lack is not None)
    needs = "; ".join(f"{count} of the variants: {lack}" if len(lacks) > 1 else lack for lack, count in lacks.items())
    if not here:
        return Text(
            f"Nothing can be tuned on {device}. {units.counted(len(entries), 'variant')} of {units.counted(len(ops), 'op')} "
            f"({', '.join(ops)}) have parameters, and none of them can run here: {needs}."
        )
    elsewhere = [op for op in ops if op not in here]
    rest = f" Not here: {', '.join(elsewhere)} ({needs})." if elsewhere else ""
    return Text(f"Ops with a variant that can be tuned on {device}: {', '.join(here)}.{rest}")


def describe_failures(reason: Reason) -> Text:
    """Why some failed. If their messages differ only in numbers, the first of them.

    >>> from kernelviz.core import Failure
    >>> print(describe_failures(Reason(Failure(stage="compile", message="Required: 300"), ("t[b=1]", "t[b=2]"), alike=True)))
    does not compile: Required: 300 (and the like, with other numbers)
    """
    return format_failure(reason.failure) + (" (and the like, with other numbers)" if reason.alike else "")


def describe_best_configuration(tried: Tried) -> Text:
    """The configuration that the tuning chose, or the best one so far."""
    best = tried.best
    if best is None or best.figure is None:
        return Text("No configuration is correct.")
    values = configuration_text(parted(best.result.variant)[1] or {})
    if best.is_baseline:
        return Text(f"No configuration is measurably faster than the default, {values}.")
    return Text(f"Best: {values}, {_gain(speed_up_span(best))}.")


def describe_best(tried: Tried, stored: Tuning | None) -> Text:
    """The configuration that is used from now on, or the best one so far."""
    best = tried.best
    if best is None or best.figure is None:
        return Text("No configuration is correct: nothing is kept.")
    said = describe_best_configuration(tried)
    if stored is None:
        return Text(f"{said} It is not kept.")
    return Text(f"{said} {tried.variant} uses it from now on for {stored.problem.key} on {stored.device}.")


def format_gain(tuning: Tuning) -> Text:
    """The speed-up of the best configuration over the default one.

    >>> print(_gain(Span(estimate=1.25, low=1.2, high=1.3)), _gain(Span(estimate=1.25)), _gain(None), sep=", ")
    1.25× faster than the default (1.20–1.30), 1.25× faster than the default, the default has no time
    """
    return Text("the default is best") if tuning.configuration == tuning.default else _gain(tuning.speed_up)


def _gain(span: Span | None) -> Text:
    if span is None:
        return Text("the default has no time")
    return format_speed_up(span.estimate, span.low, span.high)


def describe_cost(seconds: float, tried: Tried) -> Text:
    """How long the tuning held the device, which no sample contains. 0 seconds: unknown on this machine."""
    if not seconds:
        return Text("What the tuning took is not known here.")
    return Text(
        f"Tuning took {seconds:.1f} s of the device, of which {tried.preparing_s:.1f} s binding and first calls (compiling)."
    )


def record(run: Run, tried: Tried, stored: Tuning | None, seconds: float) -> dict[str, Any]:
    """The tuning as plain values: every configuration with its time, best first, then the failures, by reason."""
    return {
        "run": run.id,
        "status": run.status,
        "problem": msgspec.to_builtins(tried.problem),
        "variant": tried.variant,
        "device": run.environment.device.name,
        "seed": run.plan.search.seed if run.plan.search else None,
        "space": tried.space,
        "planned": tried.planned,
        "tried": tried.tried,
        "failed": tried.failed,
        "refused": tried.refused,
        "cancelled": tried.cancelled,
        "stopped": tried.stopped,
        "seconds": seconds,
        "preparing_s": tried.preparing_s,
        "best": parted(tried.best.result.variant)[1] if tried.best is not None else None,
        "kept": msgspec.to_builtins(stored),
        "configurations": records(tried),
        "failures": [
            {
                "stage": r.failure.stage,
                "message": str(on_one_line(describe_failure(r.failure))),
                "configurations": [parted(name)[1] for name in r.variants],
            }
            for r in tried.failures
        ],
    }


def records(tried: Tried) -> list[dict[str, Any]]:
    """A flat record for each correct configuration, best first."""
    return [_record(row, tried) for row in tried.ranked]


def _record(row: Row, tried: Tried) -> dict[str, Any]:
    gain = speed_up_span(row)
    assert row.figure is not None
    return {
        **(parted(row.result.variant)[1] or {}),
        "time_s": row.figure.estimate,
        "time_low_s": row.figure.low,
        "time_high_s": row.figure.high,
        "speed_up": gain.estimate if gain else None,
        "speed_up_low": gain.low if gain else None,
        "speed_up_high": gain.high if gain else None,
        "verdict": row.verdict.kind if row.verdict else None,
        "is_default": row.is_baseline,
        "is_best": row is tried.best,
        "stopped_early": stopped_early(row.result) is not None,
        "error_of_bound_fraction": row.result.accuracy.worst_of_bound if row.result.accuracy else None,
    }
