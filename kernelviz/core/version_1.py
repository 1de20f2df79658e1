"""The upgrade of ``kernelviz/1``, in which notes, failures and refusals were sentences. No other module interprets text.

It works on the decoded JSON of a result, so that documents, Parquet files, backups and rows of a database are upgraded in the
same way. A sentence that this module does not know is kept: as a note of the kind ``text``, or as the message of a failure. A
digest must be verified before the upgrade, because an upgraded result has other facts in its JSON.
"""

import re
from collections.abc import Callable
from typing import Any, get_args

import msgspec

from kernelviz.core import notes as n
from kernelviz.core import reasons as r
from kernelviz.core.run import TracerFailure, TracerFault, TracerName

Values = dict[str, Any]
_ReasonsAndMessage = tuple[tuple[r.Reason, ...], str]
_Match = re.Match[str]


def upgraded(result: Values) -> Values:
    """A result of version 1 as one of version 2; the given one stays as it is.

    Errors: LookupError, TypeError, ValueError and AttributeError for what is no result.
    """
    upgraded_result = dict(result)
    if isinstance(upgraded_result.get("conditions"), dict):
        upgraded_result["conditions"] = _conditions(upgraded_result["conditions"])
    if isinstance(upgraded_result.get("accuracy"), dict):
        upgraded_result["accuracy"] = _with_reasons(upgraded_result["accuracy"], accuracy_reasons)
    outcome = upgraded_result.get("outcome")
    if isinstance(outcome, dict):
        outcome = dict(outcome)
        if outcome.get("kind") == "failure":
            outcome = _with_reasons(outcome, failure_reasons)
            if isinstance(outcome.get("timing"), dict):
                outcome["timing"] = _timing(outcome["timing"])
        else:
            outcome = _timing(outcome)
        upgraded_result["outcome"] = outcome
    return upgraded_result


def tracer_failures(line: str | None) -> tuple[TracerFailure, ...]:
    """The failures in `Environment.tracer`, of a run that was measured before they were facts.

    >>> tracer_failures("kineto; CuptiTracer.shared: CuptiError: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35) in x")[0].fault
    'cupti_not_allowed'
    """
    return tuple(
        TracerFailure(
            tracer=name,
            fault=next((fault for signs, fault in _TRACER_SIGNS if re.search(signs, error)), "cupti_error"),
            message="" if error == "traced nothing" else error,
        )
        for name, said in zip(get_args(TracerName), (line or "cupti").split("; ")[1:], strict=False)
        for error in (said.partition(": ")[2],)
    )


_TRACER_SIGNS: tuple[tuple[str, TracerFault], ...] = (
    ("INSUFFICIENT_PRIVILEGES|error 35", "cupti_not_allowed"),
    ("MULTIPLE_SUBSCRIBERS|error 39", "other_profiler"),
    ("ModuleNotFoundError|ImportError", "no_cupti"),
    ("NotSupportedError|NOT_COMPATIBLE|FunctionNotFoundError", "other_cupti_version"),
    ("^traced nothing$", "nothing_traced"),
)


def as_written(result: Values, given: Values) -> Values:
    """A result of version 2, made of `given`, as a writer of version 1 would have put it: for the digest of a document that went
    through a program that writes numbers in another way (JavaScript makes 1 of 1.0)."""
    written = dict(result)
    if isinstance(written.get("conditions"), dict):
        said = (given.get("conditions") or {}).get("notes", [])
        written["conditions"] = {**written["conditions"], "notes": said}
    for name in ("accuracy", "outcome"):
        if isinstance(written.get(name), dict) and "reasons" in written[name]:
            rest = {key: value for key, value in written[name].items() if key != "reasons"}
            written[name] = {**rest, "message": (given.get(name) or {}).get("message", "")}
    of = written.get("outcome")
    timing, before = (_timing_in(of), _timing_in(given.get("outcome")))
    if timing is not None and before is not None:
        own = dict(timing)
        for name in _DEVICE_FIGURES:
            if isinstance(own.get(name), dict):
                own[name] = {**own[name], "places": (before.get(name) or {}).get("places")}
        written["outcome"] = own if timing is of else {**written["outcome"], "timing": own}
    return written


def _timing_in(outcome: Any) -> Values | None:
    if not isinstance(outcome, dict):
        return None
    timing = outcome.get("timing") if outcome.get("kind") == "failure" else outcome
    return timing if isinstance(timing, dict) else None


def _with_reasons(values: Values, reasons_of: Callable[[str], _ReasonsAndMessage]) -> Values:
    text = values.get("message", "")
    if not isinstance(text, str):
        return values
    reasons, message = reasons_of(text)
    return {**values, "reasons": msgspec.to_builtins(reasons), "message": message}


def _conditions(values: Values) -> Values:
    notes = values.get("notes")
    if not isinstance(notes, list):
        return values
    return {**values, "notes": [msgspec.to_builtins(note_of(x)) if isinstance(x, str) else x for x in notes]}


# Where the tensors of a call lay: a number of its own since 2026-11-20, before that a part of the line on the method.

_DEVICE_FIGURES = ("device_cold_s", "device_warm_s")
_BUFFERS = re.compile(r"at (\d{1,18}) places in memory")
_OURS = re.compile(r" before each of \d+ calls|host clock round one call, ")


def _timing(timing: Values) -> Values:
    upgraded_timing = dict(timing)
    for name in _DEVICE_FIGURES:
        figure = upgraded_timing.get(name)
        if isinstance(figure, dict) and figure.get("places") is None and isinstance(figure.get("method"), str):
            match = _BUFFERS.search(figure["method"])
            if match:
                upgraded_timing[name] = {**figure, "places": int(match[1])}
            elif _OURS.search(figure["method"]):
                upgraded_timing[name] = {**figure, "places": 1}
    return upgraded_timing


# Notes.

_FIGURES: tuple[tuple[str, n.NoteFigure], ...] = (
    ("warm: ", "warm"),
    ("graph of one call: ", "graph"),
    ("other figures: ", "secondary"),
    ("energy: ", "energy"),
    ("", "cold"),
)
_NOTES: tuple[tuple[str, Callable[[_Match, n.NoteFigure], n.Note | None]], ...] = (
    (r"the driver does not answer for this device", lambda m, f: n.DriverSilent(figure=f)),
    (
        r"holds a copy by the driver, which is slower inside a graph: launched into the stream",
        lambda m, f: n.DriverCopy(figure=f),
    ),
    (
        r"not capturable as a graph \((.*)\): launched into the stream",
        lambda m, f: None if f == "graph" else n.NotCapturable(figure=f, error=m[1]),
    ),
    (r"not capturable as a graph: (.*)", lambda m, f: n.NotCapturable(figure=f, error=m[1]) if f == "graph" else None),
    (
        r"a graph would run other kernels than an eager call does: launched into the stream",
        lambda m, f: n.OtherKernelsInGraph(figure=f),
    ),
    (r"its calls did not all launch the same kernels", lambda m, f: n.KernelsVary(figure=f)),
    (r"what tracing adds to it is not known", lambda m, f: n.TracingCostUnknown(figure=f)),
    (
        r"(\d{1,12}) of (\d{1,12}) blocks ran at a clock more than 1 % under the first",
        lambda m, f: n.SlowBlocks(figure=f, slow=int(m[1]), blocks=int(m[2])),
    ),
    (
        r"not taken, one call takes (\d{1,18}(?:\.\d{1,18})?(?:e[+-]?\d{1,2})?) s",
        lambda m, f: n.CallTooLong(figure=f, call_s=float(m[1])),
    ),
    (r"this device has no counter of it", lambda m, f: n.NoEnergyCounter(figure=f)),
    (
        r"the board's counter did not move twice in (\d{1,9}) s",
        lambda m, f: n.EnergyCounterStill(figure=f, seconds=float(m[1])),
    ),
    (
        r"not tuned: what run (\S+) found was for another version of its source",
        lambda m, f: n.StaleTuning(figure=f, run_id=m[1], another="source"),
    ),
    (
        r"not tuned: what run (\S+) found was for another space",
        lambda m, f: n.StaleTuning(figure=f, run_id=m[1], another="space"),
    ),
    (
        r"(unavailable|compile|out_of_memory|wrong|impossible|crash|timeout|cancelled): (.*)",
        lambda m, f: _later_failure(m[1], m[2], f) if f == "secondary" else None,
    ),
)


def note_of(sentence: str) -> n.Note:
    """The note that a sentence of version 1 was.

    >>> note_of("warm: 2 of 30 blocks ran at a clock more than 1 % under the first")
    SlowBlocks(figure='warm', slow=2, blocks=30)
    >>> note_of("energy: who knows")
    ForeignNote(figure='energy', text='who knows')
    """
    prefix, figure = next((p, name) for p, name in _FIGURES if sentence.startswith(p))
    sentence = sentence.removeprefix(prefix)
    matches = ((make, re.fullmatch(pattern, sentence, re.DOTALL)) for pattern, make in _NOTES)
    notes = (make(match, figure) for make, match in matches if match)
    return next((note for note in notes if note is not None), n.ForeignNote(figure=figure, text=sentence))


def _later_failure(stage: str, text: str, figure: n.NoteFigure) -> n.Note:
    reasons, message = failure_reasons(text)
    return n.LaterFailure(figure=figure, stage=msgspec.convert(stage, r.Stage), reasons=reasons, message=message)


# What the correctness gate found: sentences joined by "; ".

_NUMBER = r"(\d{1,18})"
_CHECK: tuple[tuple[str, Callable[[_Match], r.Reason]], ...] = (
    (
        r"works on another stream or thread: a call that launched nothing between (its flush|its markers) and its end marker, "
        r"while something ran outside",
        lambda m: r.OtherStream(evidence="outside", between="flush" if m[1] == "its flush" else "markers"),
    ),
    (
        rf"works on another stream or thread: work of the call starts {_NUMBER} ns before its flush ends",
        lambda m: r.OtherStream(evidence="early", early_ns=int(m[1])),
    ),
    (
        r"works on another stream or thread: work of the call ends behind its end marker",
        lambda m: r.OtherStream(evidence="late"),
    ),
    (
        r"works on another stream or thread: what it launches is not captured with it",
        lambda m: r.OtherStream(evidence="not_captured"),
    ),
    (
        r"returns a cached output: a call that launched nothing between (its flush|its markers) and its end marker",
        lambda m: r.CachedOutput(between="flush" if m[1] == "its flush" else "markers"),
    ),
    (
        r"changes an input without declaring it: (\w+(?:, \w+)*)",
        lambda m: r.MutatedInput(inputs=tuple(m[1].split(", "))),
    ),
    (
        rf"leaves output unwritten: {_NUMBER} elements were never written",
        lambda m: r.Unwritten(elements=int(m[1])),
    ),
    (
        rf"answers for inputs of an earlier time: these are the outputs for fill {_NUMBER} of its inputs, "
        r"which are others by now",
        lambda m: r.Stale(seed=int(m[1])),
    ),
    (
        r"computes in lower precision than declared: its errors are those of (\w+)",
        lambda m: r.LowerPrecision(precision=m[1]),
    ),
    (
        r"compiles or falls back inside the timed region: torch.compile wants to compile a bound call again",
        lambda m: r.Recompiled(again=True),
    ),
    (
        rf"compiles or falls back inside the timed region: torch.compile made {_NUMBER} graphs of this problem instead of 1",
        lambda m: r.Recompiled(graphs=int(m[1])),
    ),
    (r"compiles or falls back inside the timed region", lambda m: r.Recompiled()),
    (
        rf"pins its data in the L2: it let {_NUMBER} bytes of the L2 hold persisting lines",
        lambda m: r.PersistingL2(size_bytes=int(m[1])),
    ),
    (
        rf"{_NUMBER} elements are NaN or Inf where the reference is not, or the reverse",
        lambda m: r.NotFinite(elements=int(m[1])),
    ),
    (
        r"the largest error is (inf|\d{1,18}(?:\.\d{1,18})?(?:e[+-]?\d{1,2})?) times the allowed one",
        lambda m: r.ErrorTooLarge(of_bound=None if m[1] == "inf" else float(m[1])),
    ),
)


def accuracy_reasons(text: str) -> _ReasonsAndMessage:
    """The reasons that the words of a check of version 1 were, or the words where any of them is unknown.

    >>> accuracy_reasons("changes an input without declaring it: x_N; the largest error is 3.2 times the allowed one")[0][1]
    ErrorTooLarge(of_bound=3.2)
    >>> accuracy_reasons("off by one")
    ((), 'off by one')
    """
    if not text:
        return (), ""
    parts = [_first(_CHECK, part) for part in text.split("; ")]
    reasons = tuple(reason for reason in parts if reason is not None)
    return (reasons, "") if len(reasons) == len(parts) else ((), text)


def _first(known: tuple[tuple[str, Callable[[_Match], r.Reason]], ...], text: str) -> r.Reason | None:
    return next((make(match) for pattern, make in known if (match := re.fullmatch(pattern, text))), None)


# Failures of any other stage: one sentence, and often the message of another program behind it.

_TAIL = r"(?:\n(.*))?"
_SECONDS = r"(\d{1,18}(?:\.\d{1,18})?(?:e[+-]?\d{1,2})?)"
_FAILURES: tuple[tuple[str, Callable[[_Match], tuple[r.Reason, str]]], ...] = (
    (r"cancelled before it was measured", lambda m: (r.CancelledBefore(), "")),
    (
        rf"cancelled after {_NUMBER} of {_NUMBER} blocks",
        lambda m: (r.CancelledDuring(blocks=int(m[1]), needed=int(m[2])), ""),
    ),
    (r"cancelled", lambda m: (r.Cancelled(), "")),
    (r"the server was stopped", lambda m: (r.ServerStopped(), "")),
    (r"CUDA error: (.*)", lambda m: (r.CudaError(), m[1])),
    (r"the tracer lost its records: (.*)", lambda m: (r.TracerLostRecords(), m[1])),
    (
        r"the measuring session ended this problem without a result for the variant",
        lambda m: (r.NoResult(), ""),
    ),
    (
        rf"the worker process left with exit code (\d{{1,9}}){_TAIL}",
        lambda m: (r.WorkerEnded(exit_code=int(m[1])), m[2] or ""),
    ),
    (
        rf"the worker process was ended by (?:signal )?(SIG[A-Z0-9]+|\d{{1,9}}){_TAIL}",
        lambda m: (r.WorkerEnded(signal=m[1]), m[2] or ""),
    ),
    (rf"the worker process closed its connection{_TAIL}", lambda m: (r.WorkerEnded(), m[1] or "")),
    (
        rf"the worker sent what is no message \(([^\n]*)\){_TAIL}",
        lambda m: (r.WorkerGarbled(error=m[1]), m[2] or ""),
    ),
    (
        rf"nothing was heard for {_SECONDS} s(?: while (binding|compiling|checking|measuring))?{_TAIL}",
        lambda m: (r.Silent(seconds=float(m[1]), step=m[2]), m[3] or ""),
    ),
    (rf"no result after {_SECONDS} s{_TAIL}", lambda m: (r.TookTooLong(seconds=float(m[1])), m[2] or "")),
    (
        rf"the worker was not ready after {_SECONDS} s{_TAIL}",
        lambda m: (r.WorkerNotReady(seconds=float(m[1])), m[2] or ""),
    ),
    (r"no worker can be started: (.*)", lambda m: (r.NoWorker(), m[1])),
    (r"this configuration is not for such sizes: (.*)", lambda m: (r.NotAdmitted(text=m[1]), "")),
    (r"has no (forward|backward|None) pass", lambda m: (r.NoDirection(direction=None if m[1] == "None" else m[1]), "")),
    (
        r"has no (\w+) kernel \(it has (\w+(?:, \w+)*)\)",
        lambda m: (r.NoDtype(dtype=m[1], has=tuple(m[2].split(", "))), ""),
    ),
    (
        r"computes in (\w+(?:, \w+)*) only, not in (\w+)",
        lambda m: (r.NoCompute(compute=m[2], has=tuple(m[1].split(", "))), ""),
    ),
    (r"skipped: no reason is given", lambda m: (r.Skipped(), "")),
    (r"skipped: (.*)", lambda m: (r.Skipped(), m[1])),
    (
        rf"returned {_NUMBER} outputs, op '([^']*)' has {_NUMBER}",
        lambda m: (r.OutputCount(returned=int(m[1]), expected=int(m[3]), op=m[2]), ""),
    ),
    (
        r"output (\w+) has shape \(([\d, ]*)\), \(([\d, ]*)\) was expected",
        lambda m: (r.OutputShape(output=m[1], shape=_shape(m[2]), expected=_shape(m[3])), ""),
    ),
    (
        r"output (\w+) is (torch\.\w+), (torch\.\w+) was expected",
        lambda m: (r.OutputDtype(output=m[1], dtype=m[2], expected=m[3]), ""),
    ),
    (
        rf"{_SECONDS} us is less than the {_SECONDS} us that the data sheet of (.*) allows for this traffic and work; the call "
        r"cannot have done it",
        lambda m: (r.ImpossiblyFast(time_s=_us(m[1]), least_s=_us(m[2]), device=m[3]), ""),
    ),
    (
        rf"needs {_SECONDS} GiB \(inputs, outputs and the reference\), {_SECONDS} GiB are free on (.*); choose smaller sizes",
        lambda m: (r.DoesNotFitMemory(needed_bytes=_gib(m[1]), free_bytes=_gib(m[2]), device=m[3]), ""),
    ),
)


def failure_reasons(text: str) -> _ReasonsAndMessage:
    """The reasons and the message that the words of a failure of version 1 were.

    >>> failure_reasons("CUDA error: misaligned address")
    ((CudaError(),), 'misaligned address')
    >>> failure_reasons("out of shared memory: Required: 300")
    ((), 'out of shared memory: Required: 300')
    """
    reasons, _ = accuracy_reasons(text)
    if reasons:
        return reasons, ""
    matches = ((make, re.fullmatch(pattern, text, re.DOTALL)) for pattern, make in _FAILURES)
    failure = next((make(match) for make, match in matches if match), None)
    return ((failure[0],), failure[1]) if failure else ((), text)


def _shape(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part.strip())


def _us(text: str) -> float:
    return float(f"{text}e-6") if "e" not in text else float(text) / 1e6


def _gib(text: str) -> int:
    return round(float(text) * 2**30)
