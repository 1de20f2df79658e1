"""Each note, reason and verdict in text, and the way back: the upgrade reads every sentence that version 1 could write."""

from __future__ import annotations

from typing import get_args

import pytest

from kernelviz.core import notes as n
from kernelviz.core import reasons as r
from kernelviz.core.cheats import CHEATS, cheat_of
from kernelviz.core.notices import Notice
from kernelviz.core.result import Accuracy, Failure, Stage
from kernelviz.core.version_1 import accuracy_reasons, failure_reasons, note_of
from kernelviz.metrics import quality
from kernelviz.metrics import verdict_reasons as v
from kernelviz.text import notes as text_of_notes
from kernelviz.text.cheats import EXPLANATIONS, NAMES
from kernelviz.text.failures import REASONS, STAGES, describe_failure, describe_reason
from kernelviz.text.notes import FIGURES, describe_note, format_note
from kernelviz.text.quality import PARTS
from kernelviz.text.verdicts import VERDICT_REASONS, describe_verdict_reason

NOTES: tuple[tuple[n.Note, str, str], ...] = (
    (n.DriverSilent(), "", "the driver does not answer for this device"),
    (n.DriverCopy(), "", "holds a copy by the driver, which is slower inside a graph: launched into the stream"),
    (n.NotCapturable(error="E"), "", "not capturable as a graph (E): launched into the stream"),
    (n.NotCapturable(figure="graph", error="E"), "graph of one call: ", "not capturable as a graph: E"),
    (
        n.OtherKernelsInGraph(figure="warm"),
        "warm: ",
        "a graph would run other kernels than an eager call: launched into the stream",
    ),
    (n.KernelsVary(), "", "its calls did not all launch the same kernels"),
    (n.TracingCostUnknown(figure="warm"), "warm: ", "the tracing overhead is unknown"),
    (n.SlowBlocks(slow=2, blocks=30), "", "SM clock dropped more than 1 % in 2 of 30 blocks"),
    (n.CallTooLong(figure="secondary", call_s=0.36), "other figures: ", "not measured, because one call takes 0.36 s"),
    (n.NoEnergyCounter(figure="energy"), "energy: ", "this device has no energy counter"),
    (
        n.EnergyCounterStill(figure="energy", seconds=8),
        "energy: ",
        "the energy counter did not change twice in 8 s",
    ),
    (
        n.StaleTuning(run_id="r1", another="source"),
        "",
        "not tuned: what run r1 found was for another version of its source",
    ),
    (n.StaleTuning(run_id="r1", another="space"), "", "not tuned: what run r1 found was for another space"),
    (n.LaterFailure(figure="secondary", stage="crash", message="gone"), "other figures: ", "crash: gone"),
    (
        n.LaterFailure(figure="secondary", stage="cancelled", reasons=(r.CancelledBefore(),)),
        "other figures: ",
        "cancelled: cancelled before it was measured",
    ),
    (n.ForeignNote(text="whatever somebody wrote"), "", "whatever somebody wrote"),
)
NOTES_OF_VERSION_1: dict[str, str] = {
    "a graph would run other kernels than an eager call: launched into the stream": "a graph would run other kernels than an "
    "eager call does: launched into the stream",
    "the tracing overhead is unknown": "what tracing adds to it is not known",
    "SM clock dropped more than 1 % in 2 of 30 blocks": "2 of 30 blocks ran at a clock more than 1 % under the first",
    "not measured, because one call takes 0.36 s": "not taken, one call takes 0.36 s",
    "this device has no energy counter": "this device has no counter of it",
    "the energy counter did not change twice in 8 s": "the board's counter did not move twice in 8 s",
}
"""What documents `kernelviz/1` say instead of a sentence, where they say it otherwise."""


LATER_NOTES: tuple[tuple[n.Note, str], ...] = (
    (n.MeasuredAgain(attempts=1), "not stable at first: measured again once"),
    (n.MeasuredAgain(attempts=2), "not stable at first: measured again 2 times"),
    (
        n.BaselineMoved(baseline_s=15.7e-3, usual_s=0.7e-3),
        "the machine changed: the baseline took 15.7 ms during this measurement, and 700 µs before",
    ),
    (
        n.TracingShortens(by_s=17e-6),
        "tracing makes this call 17.0 µs shorter, so its time is that of untraced calls, by CUDA events",
    ),
    (
        n.NoNaiveTiming(figure="naive", fault="raised", message="ValueError: no"),
        "the call failed in a new process: ValueError: no",
    ),
    (
        n.StoppedEarly(ratio=2.345, factor=1.5),
        "stopped early: the time of one block, without an interval, because its fastest call took 2.35 times as long as the best "
        "beside it (more than 1.5)",
    ),
    (n.NoNaiveTiming(figure="naive", fault="time_limit", seconds=90.0), "its process did not end within 90 s"),
    (n.NoNaiveTiming(figure="naive", fault="ended", exit_code=-9), "its process ended with code -9 without an answer"),
    (
        n.ClockConfirmed(at_most_s=1.05e-3, trials=8),
        "confirmed by the judge: 1.050 ms at most, shortest of 8 calls by its own clock",
    ),
    (
        n.ClockUnverified(at_most_s=60e-6, trials=40),
        "unverified clock: the time was taken in the variant's own process; by the judge's clock, which also counts the launch, "
        "it is at most 60.00 µs (the shortest of 40 calls)",
    ),
)
"""Notes for which no earlier version had a sentence."""


@pytest.mark.parametrize(("note", "sentence"), LATER_NOTES)
def test_a_later_note_in_text(note: n.Note, sentence: str) -> None:
    assert str(describe_note(note)) == sentence


@pytest.mark.parametrize(("note", "before", "sentence"), NOTES, ids=lambda x: x if isinstance(x, str) else "")
def test_a_note_in_text_and_back(note: n.Note, before: str, sentence: str) -> None:
    assert str(describe_note(note)) == sentence
    assert str(format_note(note)) == f"{FIGURES[note.figure]}: {sentence}"
    assert note_of(before + NOTES_OF_VERSION_1.get(sentence, sentence)) == note


def test_every_kind_of_note_is_here() -> None:
    known = {type(note) for note, _, _ in NOTES} | {type(note) for note, _ in LATER_NOTES}
    assert known == set(get_args(n.Note)) == set(text_of_notes.NOTES)


CHECKS: tuple[tuple[r.Reason, str], ...] = (
    (
        r.OtherStream(evidence="outside", between="flush"),
        "works on another stream or thread: a call that launched nothing between its flush and its end marker, while something "
        "ran outside",
    ),
    (
        r.OtherStream(evidence="early", early_ns=9000),
        "works on another stream or thread: work of the call starts 9000 ns before its flush ends",
    ),
    (r.OtherStream(evidence="late"), "works on another stream or thread: work of the call ends behind its end marker"),
    (
        r.OtherStream(evidence="not_captured"),
        "works on another stream or thread: what it launches is not captured with it",
    ),
    (
        r.CachedOutput(between="markers"),
        "returns a cached output: a call that launched nothing between its markers and its end marker",
    ),
    (r.MutatedInput(inputs=("x_N", "y_N")), "changes an input without declaring it: x_N, y_N"),
    (r.Unwritten(elements=3), "leaves output unwritten: 3 elements were never written"),
    (
        r.Stale(seed=1),
        "returns outputs for earlier inputs: these are the outputs for fill 1, but the inputs have been filled again since",
    ),
    (r.LowerPrecision(precision="bf16"), "computes in lower precision than declared: its errors are those of bf16"),
    (r.Recompiled(), "compiles or falls back inside the timed region"),
    (
        r.Recompiled(again=True),
        "compiles or falls back inside the timed region: torch.compile wants to compile a bound call again",
    ),
    (
        r.Recompiled(graphs=2),
        "compiles or falls back inside the timed region: torch.compile made 2 graphs of this problem instead of 1",
    ),
    (r.PersistingL2(size_bytes=4096), "pins its data in the L2: it let 4096 bytes of the L2 hold persisting lines"),
    (r.NotFinite(elements=7), "7 elements are NaN or Inf where the reference is not, or the reverse"),
    (r.ErrorTooLarge(of_bound=3.25), "the largest error is 3.25 times the allowed one"),
    (r.ErrorTooLarge(of_bound=None), "the largest error is inf times the allowed one"),
)
VERSION_1 = {
    "returns outputs for earlier inputs: these are the outputs for fill 1, but the inputs have been filled again since": (
        "answers for inputs of an earlier time: these are the outputs for fill 1 of its inputs, which are others by now"
    ),
}
"""The sentence of version 1 for each sentence that has changed since."""
FAILURES: tuple[tuple[r.Reason, str, str], ...] = (
    (r.CancelledBefore(), "", "cancelled before it was measured"),
    (r.CancelledDuring(blocks=3, needed=10), "", "cancelled after 3 of 10 blocks"),
    (r.Cancelled(), "", "cancelled"),
    (r.ServerStopped(), "", "the server was stopped"),
    (r.CudaError(), "misaligned address", "CUDA error: misaligned address"),
    (r.TracerLostRecords(), "two flushes", "the tracer lost its records: two flushes"),
    (r.NoResult(), "", "the measuring session ended this problem without a result for the variant"),
    (r.WorkerEnded(exit_code=3), "", "the worker process left with exit code 3"),
    (r.WorkerEnded(signal="SIGABRT"), "a log\nof it", "the worker process was ended by SIGABRT\na log\nof it"),
    (r.WorkerEnded(signal="65"), "", "the worker process was ended by signal 65"),
    (r.WorkerEnded(), "", "the worker process closed its connection"),
    (r.WorkerGarbled(error="no JSON"), "a log", "the worker sent what is no message (no JSON)\na log"),
    (r.Silent(seconds=30, step="checking"), "", "nothing was heard for 30 s while checking"),
    (r.Silent(seconds=1.5), "a log", "nothing was heard for 1.5 s\na log"),
    (r.TookTooLong(seconds=130), "", "no result after 130 s"),
    (r.WorkerNotReady(seconds=300), "a log", "the worker was not ready after 300 s\na log"),
    (r.NoWorker(), "no memory", "no worker can be started: no memory"),
    (r.NotAdmitted(text="too large a tile"), "", "this configuration is not for such sizes: too large a tile"),
    (r.NoDirection(direction="backward"), "", "has no backward pass"),
    (r.NoDirection(direction=None), "", "has no None pass"),
    (r.NoDtype(dtype="fp32", has=("fp16", "bf16")), "", "has no fp32 kernel (it has fp16, bf16)"),
    (r.NoCompute(compute="tf32", has=("ieee",)), "", "computes in ieee only, not in tf32"),
    (r.Skipped(), "", "skipped: no reason is given"),
    (r.Skipped(), "too large", "skipped: too large"),
    (r.OutputCount(returned=2, expected=1, op="add"), "", "returned 2 outputs, op 'add' has 1"),
    (
        r.OutputShape(output="z_N", shape=(500,), expected=(2, 3)),
        "",
        "output z_N has shape (500,), (2, 3) was expected",
    ),
    (
        r.OutputDtype(output="z_N", dtype="torch.float16", expected="torch.float32"),
        "",
        "output z_N is torch.float16, torch.float32 was expected",
    ),
    (
        r.ImpossiblyFast(time_s=154e-6, least_s=155e-6, device="NVIDIA H200"),
        "",
        "154 us is less than the 155 us that the data sheet of NVIDIA H200 allows for this traffic and work; the call cannot "
        "have done it",
    ),
    (
        r.DoesNotFitMemory(needed_bytes=3 * 2**30, free_bytes=2**30, device="cpu"),
        "",
        "needs 3.00 GiB (inputs, outputs and the reference), 1.00 GiB are free on cpu; choose smaller sizes",
    ),
)
NEW_ONLY: tuple[tuple[r.Reason, str, str], ...] = (
    (
        r.OutputStrides(output="y_NM", strides=(1, 1000)),
        "",
        "output y_NM has strides (1, 1000); it must be contiguous, so that it cannot be a view of an input",
    ),
    (
        r.StoredResultDamaged(),
        "",
        "its stored result cannot be read, because the database is damaged there; measure it again",
    ),
    (r.SizeTooLarge(axis="m", size=16, most=8), "", "takes m up to 8 only"),
    (r.Unfinished(elements=5), "", "works on after it has returned: 5 elements changed after the call had returned"),
    (
        r.Remembered(new_s=2.5e-4, repeated_s=1e-6),
        "",
        "remembers its answers: a call takes 250 us with new numbers, and 1 us with the same numbers again",
    ),
    (
        r.ClockContradicted(time_s=1e-4, judged_s=2e-3, copy_s=3e-4, trials=40),
        "",
        "the worker's time is 100.0 µs, but by the judge's own clock the shortest of 40 calls took 2.000 ms, without the "
        "300.0 µs for the copy of its outputs",
    ),
    (
        r.ReplacedFunctions(functions=("time.perf_counter_ns", "a.b", "a.c", "a.d")),
        "",
        "it replaced functions that measure or check it (time.perf_counter_ns, a.b, a.c and 1 more)",
    ),
    (r.FailedElsewhere(how="compile"), "nvcc: no", "the tool could not compile it: nvcc: no"),
    (r.FailedElsewhere(how="unknown"), "", "the tool has no time for it, and its file does not say why"),
    (r.NotJudged(), "the worker ended during a call", "the judge could not check it: the worker ended during a call"),
    (
        r.OutputType(output="z_N", type="NoneType"),
        "",
        "output z_N is of type NoneType, a plain tensor was expected",
    ),
    (
        r.NoLaunch(type="int"),
        "",
        "binding returned an object of type int, a function that launches the kernel was expected",
    ),
    (r.Raised(type="KeyError"), "'block'", "raised KeyError: 'block'"),
    (r.NeedMissing(text="needs CUDA: choose a GPU as the device"), "", "needs CUDA: choose a GPU as the device"),
    (
        r.NeedMissing(notice=Notice("needs", {"cause": Notice("gpu_not_chosen")})),
        "",
        "needs CUDA: choose a GPU as the device",
    ),
    (r.NeedMissing(notice=Notice("needs")), "", "needs what this machine does not have (needs)"),
    (r.NeedMissing(notice=Notice("needs", {"cause": 1})), "", "needs what this machine does not have (needs)"),
    (
        r.DiskFull(folders=(r.Folder(path="/t", variable="TMPDIR"),)),
        "OSError: full",
        "the disk is full; free some space, or move what compilers write there: /t (TMPDIR) (OSError: full)",
    ),
    (
        r.CacheNotWritable(path="/c/1", cache=r.Folder(path="/c", variable="TRITON_CACHE_DIR")),
        "OSError: no",
        "/c/1 cannot be written; make /c writable, or set TRITON_CACHE_DIR to a folder that is (OSError: no)",
    ),
)
"""For these, a document of version 1 keeps the sentence as its message, because its parts cannot be separated reliably."""


@pytest.mark.parametrize(("reason", "sentence"), CHECKS)
def test_what_the_gate_found_in_text_and_back(reason: r.Reason, sentence: str) -> None:
    assert str(describe_reason(reason)) == sentence
    before = VERSION_1.get(sentence, sentence)
    assert accuracy_reasons(before) == failure_reasons(before) == ((reason,), "")
    two = accuracy_reasons(f"{before}; the largest error is 2 times the allowed one")
    assert two == ((reason, r.ErrorTooLarge(of_bound=2.0)), "")
    checked = Accuracy(passed=False, relative_l2=None, max_abs=None, worst_of_bound=None, reasons=two[0])
    assert str(describe_failure(checked)) == f"{sentence}; the largest error is 2 times the allowed one"


@pytest.mark.parametrize(("reason", "message", "sentence"), FAILURES)
def test_a_failure_in_text_and_back(reason: r.Reason, message: str, sentence: str) -> None:
    assert str(describe_failure(Failure(stage="crash", reasons=(reason,), message=message))) == sentence
    assert failure_reasons(sentence) == ((reason,), message)


@pytest.mark.parametrize(("reason", "message", "sentence"), NEW_ONLY)
def test_a_failure_in_text(reason: r.Reason, message: str, sentence: str) -> None:
    assert str(describe_failure(Failure(stage="compile", reasons=(reason,), message=message))) == sentence
    assert failure_reasons(sentence) == ((), sentence)


def test_every_reason_and_every_stage_is_here() -> None:
    here = {type(x[0]) for x in (*CHECKS, *FAILURES, *NEW_ONLY)}
    assert here == set(get_args(r.Reason)) == set(REASONS)
    assert set(STAGES) == set(get_args(Stage))


def test_every_cheat_has_one_reason_one_name_and_one_explanation() -> None:
    assert sorted(map(cheat_of, get_args(r.Cheating))) == sorted(CHEATS) == sorted(NAMES) == sorted(EXPLANATIONS)


@pytest.mark.parametrize(
    "text",
    [
        "ptxas fatal: cancelled",
        "RuntimeError: the server was stopped",
        "the largest error is 3.2 times the allowed one; and something else",
        "the largest error is 1.2.3 times the allowed one",
        "no result after 1e999 s",
        "warm",
        "",
    ],
)
def test_what_another_program_wrote_is_no_reason(text: str) -> None:
    assert failure_reasons(text) == ((), text)
    assert accuracy_reasons(text) == ((), text)


PAIRS: tuple[tuple[v.PairReason, str], ...] = (
    (v.NoSharedRounds(), "no round measured both"),
    (v.NoSharedRounds(with_baseline=False), "no round measured both, and none measured each of them with the baseline"),
    (v.FewSharedRounds(4, 10), "only 4 rounds measured both, and an interval needs 10"),
    (v.Clears("below", 0.005), "the whole 95 % interval is beyond the ±0.5 % noise floor"),
    (v.Clears("inside", 0.005), "the whole 95 % interval is inside the ±0.5 % noise floor"),
    (
        v.OtherLaunch(0.141),
        "one was launched in graphs and the other into the stream, which alone may differ by 14.1 %",
    ),
    (v.FloorTooWide(0.084), "measurement noise (8.4 %) is too high to compare"),
    (v.NotStable(), "one of the times has two levels, and the verdict depends on which one counts"),
    (v.Straddles(0.005), "the 95 % interval is partly inside the ±0.5 % noise floor (measure longer)"),
    (v.FewBlocks(None, 10), "the samples of one side are unknown"),
    (v.FewBlocks(9, 10), "one side has only 9 blocks, and an interval needs 10"),
    (
        v.ByBaseline(v.Clears("above", 0.012)),
        "compared through the baseline: the whole 95 % interval is beyond the ±1.2 % noise floor",
    ),
    (
        v.Apart(v.Straddles(0.01)),
        "measured in processes of their own: the 95 % interval is partly inside the ±1.0 % noise floor (measure longer)",
    ),
    (v.SameCode(), "source, kernels and compilers are identical, so the difference is noise"),
    (v.Failed("B", "wrong"), "B has no correct time (wrong result)"),
    (v.NoTime(("A",), "warm"), "A has no warm time"),
    (v.NoTime(("A", "B"), "warm"), "neither A nor B has a warm time"),
    (v.OtherMethod("device", "cuda", "cpu"), "the kind of device differs: a GPU in A, a CPU in B"),
    (v.OtherMethod("clock", "burst", None), "the clock mode differs: burst in A, clock mode unknown in B"),
    (v.OtherMethod("data", "normal", "zeros"), "the kind of input data differs: normal data in A, zeros data in B"),
    (v.OtherMethod("timer", "cupti", "events"), "the timer differs: CUPTI timestamps in A, CUDA events in B"),
    (v.OtherMethod("launch", "graph", "stream"), "the launch method differs: in a graph in A, into the stream in B"),
    (v.MethodUnknown("timer", ("A", "B")), "the timer is unknown in A and B"),
    (v.TracingUnknown(("B",)), "the tracing overhead is unknown in B"),
    (v.TracingSubtracted("B"), "the tracing overhead was subtracted in B only"),
    (
        v.OtherTool("real time"),
        "the files of another tool have no samples of real time, so only the ratio is known",
    ),
    (v.OneMeasurement(), "A and B are the same measurement"),
)


@pytest.mark.parametrize(("reason", "sentence"), PAIRS)
def test_what_a_verdict_rests_on_in_text(reason: v.PairReason, sentence: str) -> None:
    assert str(describe_verdict_reason(reason)) == sentence


def test_every_reason_of_a_verdict_is_here() -> None:
    assert {type(reason) for reason, _ in PAIRS} == set(get_args(v.PairReason)) == set(VERDICT_REASONS)


def test_every_fact_of_measurement_quality_has_one_text() -> None:
    assert set(PARTS) == set(get_args(quality.Fact))
