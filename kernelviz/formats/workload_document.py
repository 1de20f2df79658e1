"""The document of a run of a workload, ``kernelviz-workload/1``: JSON with a digest, checked like any file from elsewhere."""

import hashlib
import json
import sys
from typing import Any

import msgspec

from kernelviz.core import DocumentError
from kernelviz.core.workload import (
    WORKLOAD_SCHEMA,
    Counted,
    Measured,
    Timeline,
    Workload,
    WorkloadGroup,
    WorkloadResult,
    WorkloadRun,
    WorkloadValue,
    finite_measurement,
)
from kernelviz.core.workload_explanations import as_recorded
from kernelviz.formats.document import JSON_ERRORS, document_error
from kernelviz.formats.integrity import Seal
from kernelviz.formats.validation import (
    MAX_CASES,
    MAX_NAME,
    MAX_RATE,
    MAX_SIZE,
    MOST_S,
    check_between,
    check_environment,
    check_moment,
    refuse,
)
from kernelviz.formats.workload_explanations import with_present_explanations

MOST_BYTES = 32 * 2**20
"""Documents of more bytes are not read. A case of 200 rounds with a timeline of 2,000 spans has about 200 kB."""
MOST_SPANS, MOST_DEVICES, MOST_GROUPS = 100_000, 8, 10_000
MAX_TEXT = 20_000
"""Characters of a text that is shown, such as a help text or a note."""
SUFFIX = ".workload.json"


class _Head(msgspec.Struct):
    schema: str


class _Digest(msgspec.Struct):
    digest: str | None = None


def recognises(data: bytes | str) -> bool:
    """Whether this is JSON that says it is a run of a workload, of this version or a newer one."""
    try:
        schema = msgspec.json.decode(data, type=_Head).schema
    except (*JSON_ERRORS, UnicodeError):
        return False
    return schema.partition("/")[0] == WORKLOAD_SCHEMA.partition("/")[0]


def encode(run: WorkloadRun) -> bytes:
    """The run as JSON (UTF-8) with its digest."""
    return msgspec.json.encode(msgspec.to_builtins(_finite(run)) | {"digest": digest(run)})


def decode(data: bytes | str, *, most_bytes: int | None = MOST_BYTES) -> WorkloadRun:
    """The run of a document, with the directions and explanations that this version declares.

    `most_bytes`: None for no limit. Errors: DocumentError with the path of the field, for any bytes.
    """
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if most_bytes is not None and len(raw) > most_bytes:
        raise DocumentError(
            f"it has {len(raw) / 1e6:.1f} MB, runs of workloads of more than {most_bytes / 1e6:.0f} MB are not read"
        )
    try:
        schema = msgspec.json.decode(raw, type=_Head).schema
        if schema != WORKLOAD_SCHEMA:
            raise DocumentError(
                f"it was written as {schema[:80]!r}, {WORKLOAD_SCHEMA!r} is read; update kernelviz", path="$.schema"
            )
        run = msgspec.json.decode(raw, type=WorkloadRun)
    except JSON_ERRORS as error:
        raise document_error(error) from None
    return with_present_explanations(checked(run))


def digest(run: WorkloadRun) -> str:
    """SHA-256 (hex) over plan, environment, devices, recorded declaration and results, as JSON with sorted keys: equal for equal
    facts, independent of title and note. The paths of plug-ins are left out, because they are files of one machine."""
    run = _finite(run)
    plan = msgspec.structs.replace(run.plan, plugins=())
    facts = (plan, run.environment, run.devices, run.declared, run.results)
    return hashlib.sha256(msgspec.json.encode(facts, order="sorted")).hexdigest()


def sealed(data: bytes | str) -> Seal:
    """Whether the digest in a document matches its facts. Errors: DocumentError."""
    run = decode(data)
    stated = msgspec.json.decode(data, type=_Digest).digest
    return "unsealed" if stated is None else "unchanged" if stated == digest(run) else "changed"


def _finite(run: WorkloadRun) -> WorkloadRun:
    """The run as it is written."""
    results: Any = tuple(finite_measurement(result) for result in run.results)
    return msgspec.structs.replace(as_recorded(run), results=results)


def checked(run: WorkloadRun) -> WorkloadRun:
    """Return the same run. Errors: DocumentError with the path of the first field that has an impossible value."""
    check_moment(run.created_at, "$.created_at")
    check_environment(run.environment, "$.environment")
    _check_declared(run.declared)
    plan = run.plan
    refuse(
        (not plan.cases, "a plan has at least one case", "$.plan.cases"),
        (len(plan.cases) > MAX_CASES, f"it has more than {MAX_CASES} cases", "$.plan.cases"),
        (plan.workload != run.declared.name, "the plan is of another workload", "$.plan.workload"),
        (not 1 <= len(plan.devices) <= MOST_DEVICES, f"a plan has 1 to {MOST_DEVICES} devices", "$.plan.devices"),
        (len(run.devices) != len(plan.devices), "it has another number of devices than its plan", "$.devices"),
    )
    check_between(plan.method.budget_s, 0.0, MOST_S, "$.plan.method.budget_s")
    variants = {variant.name for variant in run.declared.variants}
    axes = {axis.name for axis in run.declared.axes}
    keys: set[str] = set()
    for i, case in enumerate(plan.cases):
        path = f"$.plan.cases[{i}]"
        refuse(
            (case.workload != plan.workload, "this case is of another workload", path),
            (case.variant not in variants, f"variant {case.variant[:40]!r} is not declared", f"{path}.variant"),
            (set(case.values) != axes, "its axes are not those of the workload", f"{path}.values"),
            (case.key in keys, "this case is in the plan twice", path),
        )
        for axis, value in case.values.items():
            if isinstance(value, int):
                check_between(value, -MAX_SIZE, MAX_SIZE, f"{path}.values.{axis[:40]}")
            else:
                _check_name(value, f"{path}.values.{axis[:40]}")
        keys.add(case.key)
    refuse((plan.baseline not in variants, "the baseline is not declared", "$.plan.baseline"))
    seen: set[str] = set()
    for i, result in enumerate(run.results):
        path, key = f"$.results[{i}]", result.case.key
        refuse(
            (key not in keys, "this case is not in the plan", f"{path}.case"),
            (key in seen, "this case has a result already", path),
        )
        seen.add(key)
        _check_result(result, run.declared, path)
    return run


def _check_declared(declared: Workload) -> None:
    names = {
        "axes": [axis.name for axis in declared.axes],
        "variants": [variant.name for variant in declared.variants],
        "figures": [figure.name for figure in declared.figures],
    }
    for field, of in names.items():
        path = f"$.declared.{field}"
        refuse((len(set(of)) < len(of), "a name is used twice", path), (len(of) > 1000, "it has too many", path))
        for name in of:
            _check_name(name, path)
    refuse(
        (not declared.figures, "a workload has at least one figure", "$.declared.figures"),
        (not declared.variants, "a workload has at least one variant", "$.declared.variants"),
    )
    figures = {figure.name for figure in declared.figures}
    for name in declared.chart.figures:
        refuse((name not in figures, f"figure {name[:40]!r} is not declared", "$.declared.chart.figures"))
    for text in (declared.name, declared.title, declared.summary, *(limit.text for limit in declared.limits)):
        refuse((len(text) > MAX_TEXT, f"a text of {len(text)} characters", "$.declared"))


def _check_name(name: str, path: str) -> None:
    refuse((len(name) > MAX_NAME, f"a name of {len(name)} characters; at most {MAX_NAME} are read", path))


def _check_result(result: WorkloadResult, declared: Workload, path: str) -> None:
    for name, value in result.values.items():
        figure = declared.figure_named(name)
        inside = f"{path}.values.{name[:40]}"
        refuse((figure is None, f"figure {name[:40]!r} is not declared", inside))
        _check_value(value, inside)
        if figure is not None and figure.unit in ("s", "B", "B/s", "1/s", "count"):
            least = min([value.value] if isinstance(value, Counted) else [value.estimate, *value.samples])
            # A difference of two times, such as exposed communication, may be below zero by noise; other quantities are not.
            refuse((least < 0 and figure.unit != "s", f"{least:g} is no quantity of {figure.unit}", inside))
    for i, note in enumerate(result.notes):
        refuse((len(note.text) > MAX_TEXT, f"a text of {len(note.text)} characters", f"{path}.notes[{i}].text"))
    if result.timeline is not None:
        _check_timeline(result.timeline, f"{path}.timeline")
    refuse((len(result.known_groups) > MOST_GROUPS, f"it has more than {MOST_GROUPS} groups", f"{path}.groups"))
    for i, group in enumerate(result.known_groups):
        _check_group(group, f"{path}.groups[{i}]")


def _check_group(group: WorkloadGroup, path: str) -> None:
    for name in (*group.parts, *group.kernels):
        _check_name(name, path)
    if group.time is not None:
        _check_measured(group.time, f"{path}.time")
    for i, time_s in enumerate(group.kernels_s):
        check_between(time_s, 0.0, MOST_S, f"{path}.kernels_s[{i}]")
    if group.profiler_s is not None:
        check_between(group.profiler_s, 0.0, MOST_S, f"{path}.profiler_s")


def _check_value(value: WorkloadValue, path: str) -> None:
    if isinstance(value, Counted):
        check_between(value.value, -MAX_RATE, MAX_RATE, f"{path}.value")
        return
    _check_measured(value, path)


def _check_measured(value: Measured, path: str) -> None:
    for name in ("estimate", "low", "high"):
        if (number := getattr(value, name)) is not None:
            check_between(number, -MAX_RATE, MAX_RATE, f"{path}.{name}")
    for name in ("samples", "again"):
        for i, sample in enumerate(getattr(value, name)):
            check_between(sample, -MAX_RATE, MAX_RATE, f"{path}.{name}[{i}]")
    low, high = value.low, value.high
    crossed = low is not None and high is not None and low > high
    unlike = bool(value.rounds) and len(value.rounds) != len(value.samples)
    refuse(
        (crossed, "the ends of an interval in falling order cannot be", f"{path}.low"),
        (unlike, f"{len(value.rounds)} rounds of {len(value.samples)} samples", f"{path}.rounds"),
    )


def _check_timeline(timeline: Timeline, path: str) -> None:
    refuse((len(timeline.spans) > MOST_SPANS, f"it has more than {MOST_SPANS} spans", f"{path}.spans"))
    for i, span in enumerate(timeline.spans):
        inside = f"{path}.spans[{i}]"
        check_between(span.start_s, 0.0, MOST_S, f"{inside}.start_s")
        check_between(span.end_s, 0.0, MOST_S, f"{inside}.end_s")
        refuse((span.end_s < span.start_s, "it ends before it starts", inside))
        _check_name(span.name, f"{inside}.name")


def schema() -> dict[str, Any]:
    """The JSON Schema of the document, 2020-12, made from the types that read it. ``python -m
    kernelviz.formats.workload_document`` prints it."""
    generated = msgspec.json.schema(WorkloadRun)
    run = generated["$defs"]["WorkloadRun"]
    run["properties"]["schema"] = {"const": WORKLOAD_SCHEMA}
    run["properties"]["digest"] = {
        "type": "string",
        "description": "SHA-256 (hex) over the JSON of [plan, environment, devices, declared, results] with sorted keys, without "
        "the plan's plug-ins. Readers do not need it.",
    }
    run["required"] = ["schema", *run["required"]]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{WORKLOAD_SCHEMA.replace('/', ':')}",
        "title": f"A run of a workload, {WORKLOAD_SCHEMA}",
        "description": "All quantities are in SI base units, as the unit of the figure says. Readers ignore unknown fields.",
    } | generated


if __name__ == "__main__":
    sys.stdout.write(json.dumps(schema(), indent=1, ensure_ascii=False) + "\n")
