"""Import of a cache file of Kernel Tuner: a tuning of one kernel at one problem size, one case for each configuration.

The format is that of https://github.com/KernelTuner/kernel_tuner (`kernel_tuner/util.py`): times are in milliseconds, and Kernel
Tuner appends each configuration while it tunes, so the closing braces are missing until it has ended, and the last entry may be
cut off. A configuration without a time has the name of an error in place of its time; versions before 0.4 wrote 1e20.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from math import isfinite, prod
from typing import Any

import msgspec

from kernelviz.core import (
    Device,
    DocumentError,
    Failure,
    Figure,
    Outcome,
    Preparation,
    Result,
    Run,
    Search,
    Struct,
    Timing,
    timestamps,
)
from kernelviz.core.configuration import Value, parameter_name
from kernelviz.core.problem import Problem
from kernelviz.core.reasons import FailedElsewhere, Stage
from kernelviz.formats import document, foreign
from kernelviz.formats.import_format import Import, Opening, check_count, without_constants
from kernelviz.formats.validation import MAX_CASES, MAX_SIZE, MOST_S

TOOL = "kernel_tuner"
TIME = "time"
NO_TIME = 1e20
"""What versions before 0.4 wrote as the time of a configuration that failed."""
ERRORS: Mapping[str, FailedElsewhere] = {
    "CompilationFailedConfig": FailedElsewhere(how="compile"),
    "RuntimeFailedConfig": FailedElsewhere(how="runtime"),
    "InvalidConfig": FailedElsewhere(how="invalid"),
    "ErrorConfig": FailedElsewhere(how="unknown"),
}
"""The names of Kernel Tuner's errors."""
STAGES: Mapping[str, Stage] = {"compile": "compile", "runtime": "crash", "invalid": "unavailable", "unknown": "crash"}
AXES = ("x", "y", "z")
"""Kernel Tuner states a problem size in this order."""
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]]|"', re.DOTALL)
_HEAD_BYTES = 2**20
"""The keys of the head are looked for in so many bytes of a file that is not whole."""
_KEY = re.compile(r"[^\[\],=\s](?:[^\[\],=]*[^\[\],=\s])?")


class _Counted(Struct, frozen=True, kw_only=True):
    """The same file; decoding it so is quick and takes little memory."""

    cache: dict[str, msgspec.Raw]


class _File(Struct, frozen=True, kw_only=True):
    device_name: str | None = None
    kernel_name: str | None = None
    problem_size: Any = None
    tune_params_keys: tuple[str, ...]
    tune_params: dict[str, tuple[Any, ...]] | None = None
    cache: dict[str, dict[str, Any]]


def decode(raw: bytes) -> tuple[Run, ...]:
    """The one run of the file. Errors: DocumentError with the path of the field."""
    whole, cut = terminated(raw)
    whole = without_constants(whole)
    check_count(len(document.from_json(whole, _Counted).cache), MAX_CASES, "configurations", "$.cache")
    file = document.from_json(whole, _File)
    keys = file.tune_params_keys
    _check_keys(keys)
    kernel = (file.kernel_name or foreign.UNKNOWN).replace("[", "(").replace("]", ")")
    problem = foreign.problem(kernel, _sizes(file.problem_size))
    results: dict[str, Result] = {}
    untimed: list[str] = []
    for name, entry in file.cache.items():
        path = f'$.cache["{name[:80]}"]'
        values = {key: _value(entry.get(key), f"{path}.{key}") for key in keys}
        result = _result(kernel, problem, values, entry, path)
        if result is None:
            untimed.append(name)
            continue
        if result.variant in results:
            raise DocumentError("an earlier entry has the same values of all parameters", path=path)
        results[result.variant] = result
    if not results:
        raise DocumentError("no configuration in it has a time or a failure", path="$.cache")
    return (_run(file, kernel, tuple(results.values()), untimed, cut),)


def terminated(raw: bytes) -> tuple[bytes, bool]:
    """The file with its closing braces, and whether its last entry was cut off and is left out.

    Errors: DocumentError if the file ends before the end of its first entry.

    >>> terminated(b'{"tune_params": {"b": [1]}, "cache": {"1": {"b": 1}, "2": {"b": ')
    (b'{"tune_params": {"b": [1]}, "cache": {"1": {"b": 1}}}', True)
    >>> terminated(b'{"cache": {"1": {"b": 1},'), terminated(b'{"cache": {}}')
    ((b'{"cache": {"1": {"b": 1}}}', False), (b'{"cache": {}}', False))
    """
    depth, last, in_cache, end = 0, b"", False, None
    for match in _TOKEN.finditer(raw):
        token = match[0]
        if token == b'"':  # a text without its end
            break
        if token in (b"{", b"["):
            in_cache = last == b'"cache"' if depth == 1 else in_cache
            depth += 1
        elif token in (b"}", b"]"):
            depth -= 1
            if depth == 0:
                return raw, False
            if depth == 2 and in_cache:
                end = match.end()
        else:
            last = token
    if end is None:
        raise DocumentError("it ends before the end of its first configuration", path="$.cache")
    rest = raw[end:].strip(b" \t\r\n,}")
    return raw[:end] + b"}}", bool(rest)


def _check_keys(keys: Sequence[str]) -> None:
    if not keys or len(set(keys)) < len(keys):
        raise DocumentError("it names no parameter, or one of them twice", path="$.tune_params_keys")
    for place, key in enumerate(keys):
        if not _KEY.fullmatch(key):
            raise DocumentError(f"{key[:40]!r} cannot be the name of a parameter", path=f"$.tune_params_keys[{place}]")


def _sizes(problem_size: object) -> dict[str, int]:
    """The sizes by axis; empty if the file does not state them as whole numbers."""
    listed = problem_size if isinstance(problem_size, list) else [problem_size]
    known = [n for n in listed if isinstance(n, int) and not isinstance(n, bool) and 1 <= n <= MAX_SIZE]
    return dict(zip(AXES, known, strict=False)) if 0 < len(known) == len(listed) <= len(AXES) else {}


def _value(value: object, path: str) -> Value:
    """Errors: DocumentError for what is no value of a parameter."""
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int) and abs(value) <= MAX_SIZE:
        return value
    if isinstance(value, float) and isfinite(value):
        return value
    raise DocumentError(f"{str(value)[:40]!r} is no value of a parameter (a number, a text, true or false)", path=path)


def _result(
    kernel: str, problem: Problem, values: Mapping[str, Value], entry: Mapping[str, Any], path: str
) -> Result | None:
    """The result of an entry; None if it has neither a time nor a failure."""
    outcome = _outcome({k: v for k, v in entry.items() if k not in values}, path)
    if outcome is None:
        return None
    compile_s = _spent_s(entry.get("compile_time"), f"{path}.compile_time")
    check_s = _spent_s(entry.get("verification_time"), f"{path}.verification_time")
    return Result(
        problem=problem,
        variant=parameter_name(kernel, values),
        outcome=outcome,
        preparation=Preparation(bind_s=compile_s, check_s=check_s) if compile_s or check_s else None,
        measured_at=_moment(entry.get("timestamp")),
    )


def _outcome(entry: Mapping[str, Any], path: str) -> Outcome | None:
    said = _text(entry.get("error"))
    time = entry.get("time")
    error = next((ERRORS[v] for v in entry.values() if isinstance(v, str) and v in ERRORS), None)
    if error is None and isinstance(time, int | float) and time >= NO_TIME:
        error = FailedElsewhere(how="unknown")
    if error is not None:
        return Failure(stage=STAGES[error.how], reasons=(error,), message=said)
    time_s = _seconds(time, f"{path}.time")
    if time_s is None:
        return None
    samples = _samples(entry.get("times"), f"{path}.times")
    method = _text(entry.get("method")) or method_of(len(samples))
    figure = Figure(estimate=time_s, samples=samples if len(samples) > 1 else None, method=method)
    return Timing(other_times={TIME: figure})


def method_of(calls: int) -> str:
    """How Kernel Tuner measured a time of which the file holds so many calls."""
    return f"{TOOL}: mean of {calls} calls" if calls > 1 else f"{TOOL}: a mean of calls"


def _samples(times: object, path: str) -> tuple[float, ...]:
    """The times of single calls, s; empty if one of them is not known."""
    if not isinstance(times, list):
        return ()
    known = [_seconds(time, f"{path}[{place}]") for place, time in enumerate(times)]
    return tuple(t for t in known if t is not None) if None not in known else ()


def _seconds(milliseconds: object, path: str) -> float | None:
    number = foreign.number(milliseconds, path)
    return foreign.seconds(None if number is None else number / 1000, path)


def _spent_s(milliseconds: object, path: str) -> float | None:
    """A duration of a step, s; None if it is unknown, because the tool writes 0 for a step that it did not take."""
    number = foreign.number(milliseconds, path)
    if not number:
        return None
    if not 0 <= number / 1000 <= MOST_S:
        raise DocumentError(f"{number:.6g} ms is no duration of a step", path=path)
    return number / 1000


def _text(value: object) -> str:
    return value[:2000] if isinstance(value, str) else ""


def _moment(stamp: object) -> str | None:
    if not isinstance(stamp, str):
        return None
    try:
        moment = datetime.fromisoformat(stamp)
        return timestamps.iso(moment, "seconds") if moment.tzinfo else moment.isoformat(timespec="seconds")
    except ValueError:
        return stamp[:40] or None
    except OverflowError:  # In UTC, the date would lie outside the years 1 to 9999.
        return None


def _run(file: _File, kernel: str, results: Sequence[Result], untimed: Sequence[str], cut: bool) -> Run:
    name = file.device_name or "unknown GPU"
    remarks = [" The file was not closed, and its last entry is cut off: it is left out."] if cut else []
    if untimed:
        remarks.append(f" Left out because they have neither a time nor a failure: {', '.join(untimed)[:400]}.")
    return foreign.run_of(
        tool=TOOL,
        op=kernel,
        title=f"{TOOL}: {kernel} on {name}",
        note="Imported from a cache of Kernel Tuner. The file does not contain the number format, the cost, the correctness of "
        f"the results or the state of the caches. Other metrics than times are not read.{''.join(remarks)}",
        device=Device(id="cuda:0", kind="cuda", name=name, uuid=f"{TOOL} {name}"),
        created_at=min((r.measured_at for r in results if r.measured_at), default=""),
        results=results,
        search=_search(file, kernel, results),
        path="$.cache",
    )


def _search(file: _File, kernel: str, results: Sequence[Result]) -> Search:
    """The space as the file states it. A file that does not state all of it has the space of its configurations."""
    known = file.tune_params or {}
    check_count(sum(map(len, known.values())), MAX_CASES, "values of parameters", "$.tune_params")
    values = {
        key: tuple(_value(value, f"$.tune_params.{key}[{place}]") for place, value in enumerate(known.get(key, ())))
        for key in file.tune_params_keys
    }
    space = prod(map(len, values.values()))
    if space > MAX_SIZE:
        raise DocumentError(f"a space of {space:.3g} configurations is not read", path="$.tune_params")
    if not space:
        return Search(variant=kernel, space=len(results), admitted=None)
    return Search(variant=kernel, space=space, admitted=None, parameters=values)


def _recognises(seen: Opening) -> bool:
    if seen.keys:
        return {"cache", "tune_params_keys"} <= seen.keys
    head = seen.raw[:_HEAD_BYTES]
    return head.lstrip()[:1] == b"{" and b'"tune_params_keys"' in head and b'"cache"' in head


IMPORT = Import(name="kernel-tuner", label="Kernel Tuner cache", recognises=_recognises, decode=decode)
