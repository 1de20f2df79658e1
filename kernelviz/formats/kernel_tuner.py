"""Export of a run as a cache file of Kernel Tuner, which it continues from or simulates, and which tools for such caches read.

A case is an entry, with its parameters, its time in milliseconds and the means of its blocks as single times. Kernel Tuner has no
name for a wrong result, so such a case is a failure at run time whose `error` says more. Entries may have the keys `error`,
`method` and `stopped_early`, which Kernel Tuner ignores. A duration that is not known is 0, as in Kernel Tuner's own files.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from kernelviz.core import Failure, Result, Run
from kernelviz.core.reasons import FailedElsewhere
from kernelviz.core.result import Stage
from kernelviz.formats.export_format import Export
from kernelviz.formats.foreign import milliseconds
from kernelviz.formats.kernel_tuner_read import AXES, ERRORS, NO_TIME, method_of
from kernelviz.formats.parameters_of_cases import Cases, cases_of, figure_of_case, times_of
from kernelviz.metrics.tuning import stopped_early
from kernelviz.text import describe_failure
from kernelviz.text.text import on_one_line

_NAMES: Mapping[str, str] = {error.how: name for name, error in ERRORS.items()}
_HOW: Mapping[Stage, str] = {"compile": "compile", "unavailable": "invalid"}
"""By stage; all others failed at run time."""


def encode(run: Run) -> bytes:
    """The run in UTF-8. It ends with a brace, a line feed and a brace, by which Kernel Tuner sees that a file is closed."""
    listed = cases_of(run)
    head = {
        "device_name": run.environment.device.name,
        "kernel_name": listed.name,
        "problem_size": _problem_size(run),
        "tune_params_keys": list(listed.space),
        "tune_params": listed.space,
        "objective": "time",
        "kernelviz": {
            "run": run.id,
            "op": run.plan.op,
            "problem": run.plan.problems[0].key if run.plan.problems else "",
        },
    }
    begin = msgspec.json.format(msgspec.json.encode(head)).removesuffix(b"\n}") + b',\n"cache": {'
    return begin + b",".join(_entries(listed)) + b"}\n}"


def _problem_size(run: Run) -> list[int] | None:
    """The sizes of the only problem, if Kernel Tuner has so many; None if there are several or unknown ones."""
    sizes = list(run.plan.problems[0].sizes.values()) if len(run.plan.problems) == 1 else []
    return sizes if 0 < len(sizes) <= len(AXES) else None


def _entries(listed: Cases) -> list[bytes]:
    entries: dict[str, bytes] = {}
    for result, values in listed.cases:
        key = name = ",".join(str(value) for value in values.values())
        number = 1
        while key in entries:  # as of 1 and "1"
            number += 1
            key = f"{name}#{number}"
        entries[key] = b"\n" + msgspec.json.encode({key: dict(values) | _entry(result)})[1:-1]
    return list(entries.values())


def _entry(result: Result) -> dict[str, Any]:
    spent = result.preparation
    entry: dict[str, Any] = _outcome(result)
    entry["compile_time"] = _duration(spent.bind_s if spent else None)
    entry["verification_time"] = _duration(spent.check_s if spent else None)
    entry |= dict.fromkeys(("benchmark_time", "strategy_time", "framework_time"), 0)
    if result.measured_at is not None:
        entry["timestamp"] = result.measured_at
    return entry


def _duration(time_s: float | None) -> float:
    return milliseconds(time_s) if time_s else 0


def _outcome(result: Result) -> dict[str, Any]:
    if isinstance(result.outcome, Failure):
        return failure_entry(result.outcome)
    figure = figure_of_case(result)
    if figure is None:
        return {"time": _NAMES["unknown"], "error": "none of its calls was timed"}
    times = times_of(figure)
    entry: dict[str, Any] = {"time": milliseconds(figure.estimate), "times": [milliseconds(t) for t in times]}
    if stopped_early(result) is not None:
        entry["stopped_early"] = True
    if figure.method and figure.method != method_of(len(times)):
        entry["method"] = figure.method
    return entry


def failure_entry(failure: Failure) -> dict[str, Any]:
    """The time of a case that failed, which is the name of an error, and what is known of it."""
    elsewhere = next((r for r in failure.reasons if isinstance(r, FailedElsewhere)), None)
    how = elsewhere.how if elsewhere is not None else _HOW.get(failure.stage, "runtime")
    said = failure.message if elsewhere is not None else str(on_one_line(describe_failure(failure)))
    entry: dict[str, Any] = {"time": NO_TIME if how == "unknown" else _NAMES[how]}
    return entry | ({"error": said[:2000]} if said else {})


EXPORT = Export(
    name="kernel-tuner",
    suffix=".kernel-tuner.json",
    media_type="application/json",
    encode=encode,
    label="Kernel Tuner cache (JSON)",
)
