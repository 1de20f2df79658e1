"""Export of a run as autotuning results in the format T4, which tools that compare tuners read.

The schema is https://github.com/odgaard/TuningSchema/blob/T4/results-schema.json. Times are in milliseconds. `invalidity` is
``correct`` where a case has a time. T4 cannot state that nobody checked: `correctness` is 1 only where the
check passed, and the measurement `correctness check` says ``passed``, ``failed`` or ``not checked``.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from kernelviz.core import Failure, Result, Run
from kernelviz.core.reasons import FailedElsewhere
from kernelviz.core.result import Stage
from kernelviz.formats.export_format import Export
from kernelviz.formats.foreign import milliseconds
from kernelviz.formats.parameters_of_cases import cases_of, figure_of_case, times_of
from kernelviz.metrics.tuning import stopped_early
from kernelviz.text import describe_failure
from kernelviz.text.text import on_one_line

_INVALIDITY: Mapping[Stage, str] = {
    "compile": "compile",
    "unavailable": "constraints",
    "wrong": "correctness",
    "impossible": "correctness",
    "timeout": "timeout",
    "crash": "runtime",
    "out_of_memory": "runtime",
}


def encode(run: Run) -> bytes:
    """The run in UTF-8. Cases that were cancelled are left out."""
    listed = cases_of(run)
    root = {
        "schema_version": "1.0.0",
        "metadata": {"timeunit": "milliseconds", "kernelviz": run.id, "op": run.plan.op, "tuned": listed.name},
        # As JSON one by one, because a run of 100,000 cases takes gigabytes as dictionaries.
        "results": [msgspec.Raw(msgspec.json.encode(_result(r, dict(values)))) for r, values in listed.cases],
    }
    return msgspec.json.format(msgspec.json.encode(root))


def _result(result: Result, configuration: dict[str, Any]) -> dict[str, Any]:
    failure = result.outcome if isinstance(result.outcome, Failure) else None
    figure, spent = figure_of_case(result), result.preparation
    times: dict[str, Any] = {"runtimes": [milliseconds(t) for t in times_of(figure)] if figure is not None else []}
    for key, time_s in (("compilation_time", spent and spent.bind_s), ("validation", spent and spent.check_s)):
        if time_s:
            times[key] = milliseconds(time_s)
    stamp = {"timestamp": result.measured_at} if result.measured_at is not None else {}
    return stamp | {
        "configuration": configuration,
        "objectives": ["time"],
        "times": times,
        "invalidity": "correct" if figure is not None else "runtime" if failure is None else _invalidity(failure),
        "correctness": int(_checked(result) == "passed"),
        "measurements": _measurements(result),
    }


def _invalidity(failure: Failure) -> str:
    elsewhere = next((r.how for r in failure.reasons if isinstance(r, FailedElsewhere)), None)
    return "runtime" if elsewhere == "unknown" else _INVALIDITY.get(failure.stage, "runtime")


def _checked(result: Result) -> str:
    if isinstance(result.outcome, Failure) and result.outcome.stage in ("wrong", "impossible"):
        return "failed"
    known = result.accuracy
    return "not checked" if known is None else "passed" if known.passed else "failed"


def _measurements(result: Result) -> list[dict[str, Any]]:
    figure = figure_of_case(result)
    listed: list[dict[str, Any]] = []
    if figure is not None:
        listed.append({"name": "time", "value": milliseconds(figure.estimate), "unit": "ms"})
        for name, bound in (("time low", figure.low), ("time high", figure.high)):
            if bound is not None:
                listed.append({"name": name, "value": milliseconds(bound), "unit": "ms"})
        if figure.method:
            listed.append({"name": "method", "value": figure.method, "unit": ""})
    if stopped_early(result) is not None:
        listed.append({"name": "stopped early", "value": "the time is that of one block", "unit": ""})
    if isinstance(result.outcome, Failure):
        listed.append({"name": "error", "value": str(on_one_line(describe_failure(result.outcome)))[:2000], "unit": ""})
    return [*listed, {"name": "correctness check", "value": _checked(result), "unit": ""}]


EXPORT = Export(
    name="t4",
    suffix=".t4.json",
    media_type="application/json",
    encode=encode,
    label="T4 results (JSON), for tools that compare tuners",
)
