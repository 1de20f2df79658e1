"""Kernel Tuner's cache files, whole, not closed, cut off and with failures: what is read and what is written again; and T4."""

from __future__ import annotations

import json
from typing import Any

import drawn_runs
import jsonschema
import msgspec
import peers
import pytest
import sample_runs as samples
import sample_tunings as tunings
from hypothesis import given, settings

from kernelviz.core.configuration import parameters
from kernelviz.core.errors import DocumentError
from kernelviz.core.reasons import FailedElsewhere
from kernelviz.core.result import Failure, Timing
from kernelviz.core.run import Run
from kernelviz.formats import digest, encode, exports, read
from kernelviz.metrics.rows import rows
from kernelviz.metrics.summary import summary

CACHE = json.loads(peers.kernel_tuner())
T4_SCHEMA = json.loads((peers.FOLDER / "kernel_tuner_t4_results_schema.json").read_text())


def as_written_by_kernel_tuner(entries: int, *, closed: bool = False) -> bytes:
    """As `store_cache` of Kernel Tuner appends entries: a line each, with a comma behind it."""
    head = json.dumps({**CACHE, "cache": {}}, indent="")[:-3]
    lines = [f"\n{json.dumps({key: entry})[1:-1]}," for key, entry in list(CACHE["cache"].items())[:entries]]
    text = head + "".join(lines)
    return (text[:-1] + "}\n}" if closed else text).encode()


def cache(*entries: dict[str, Any], **head: Any) -> bytes:
    whole = {
        "device_name": "A4000", "kernel_name": "k", "problem_size": [64, 32], "tune_params_keys": ["b"],
        "tune_params": {"b": [1, 2, 3, 4]}, "cache": {str(e.get("b")): e for e in entries},
    }  # fmt: skip
    return json.dumps(whole | head).encode()


def the_run(raw: bytes) -> Run:
    (run,) = read(raw)
    return run


def write(run: Run) -> bytes:
    return exports()["kernel-tuner"].encode(run)


def test_a_cache_is_a_tuning_of_a_kernel_of_which_nothing_else_is_known() -> None:
    run = the_run(peers.kernel_tuner())
    assert (run.plan.op, run.environment.device.name, run.created_at) == (
        "vector_add",
        "NVIDIA RTX A4000",
        "2022-12-23T12:11:26+00:00",
    )
    assert run.plan.search is not None
    assert (run.plan.search.space, run.plan.search.admitted) == (15, None)
    assert run.plan.search.parameter_values["block_size_x"][:3] == (128, 192, 256)
    assert run.plan.problems[0].sizes == {"x": 100}
    assert len(run.results) == 15
    first = run.results[0]
    assert isinstance(first.outcome, Timing)
    figure = first.outcome.other_times["time"]
    assert figure.estimate == pytest.approx(40.736e-6)
    assert figure.samples is not None
    assert len(figure.samples) == 7
    assert (figure.low, figure.method) == (None, "kernel_tuner: mean of 7 calls")
    assert (first.accuracy, first.cost, first.source_digest, first.problem.dtype) == (None, None, None, "unknown")
    assert first.preparation is not None
    assert first.preparation.bind_s == pytest.approx(0.44095, rel=1e-4)
    assert first.preparation.check_s is None, "0 is how Kernel Tuner writes that it did not check"
    assert summary(rows(run, ())) is None, "no winner among times that nobody checked"


def test_values_that_are_texts_and_constants_keep_their_types() -> None:
    run = the_run(peers.kernel_tuner("mixed"))
    values = [parameters(r.variant) for r in run.results]
    assert values[0] == {
        "block_size_x": 128, "test_string": "alg_2", "test_single": 15, "test_bool": True, "test_mixed": 2.45,
    }  # fmt: skip
    assert {type(v["test_mixed"]) for v in values} <= {str, int, bool, float}
    assert len(parameters('k[a="x=1, [y]",b="true",c="1e3"]')) == 0, "only as this project writes them"
    assert run.plan.search is not None
    assert [type(v) for v in run.plan.search.parameter_values["test_mixed"]] == [str, int, bool, float]


@pytest.mark.parametrize("name", ["cache", "mixed"])
def test_in_and_out_and_in_again_is_the_same_run(name: str) -> None:
    run = the_run(peers.kernel_tuner(name))
    assert the_run(write(run)) == run
    assert the_run(encode(run)) == run


@pytest.mark.parametrize("closed", [True, False])
def test_a_cache_that_is_not_closed_is_read_like_a_closed_one(closed: bool) -> None:
    raw = as_written_by_kernel_tuner(15, closed=closed)
    assert the_run(raw) == the_run(peers.kernel_tuner())
    assert the_run(raw.replace(b"0.04095", b'NaN,"x":0.04095', 1)) != the_run(raw), "NaN is no time"


def test_the_entry_that_is_cut_off_is_left_out_and_the_note_says_so() -> None:
    raw = as_written_by_kernel_tuner(15)
    for cut in range(20, 400, 37):
        run = the_run(raw[:-cut])
        assert len(run.results) == 14
        assert "cut off: it is left out" in run.note
    everything = {len(the_run(raw[:end]).results) for end in range(len(raw) // 2, len(raw), 997)}
    assert everything <= set(range(1, 16))
    for head in (raw[:60], raw[: raw.index(b'"cache"')]):
        with pytest.raises(DocumentError):
            read(head)
    with pytest.raises(DocumentError, match="before the end of its first configuration"):
        read(raw[: raw.index(b'"cache"') + 60])


def test_failures_in_all_their_forms() -> None:
    raw = cache(
        {"b": 1, "time": 0.5, "times": [0.4, 0.6]},
        {"b": 2, "time": "CompilationFailedConfig"},
        {"b": 3, "time": 1e20},
        {"b": 4, "__error__": "InvalidConfig"},
        {"b": 5, "time": "RuntimeFailedConfig", "error": "an illegal <b>access</b>"},
        {"b": 6, "time": None},
        {"b": 7, "time": 0},
        tune_params={"b": [1, 2, 3, 4, 5, 6, 7]},
    )
    run = the_run(raw)
    found = [(r.outcome.stage, r.outcome.reasons) for r in run.results if isinstance(r.outcome, Failure)]
    assert found == [
        ("compile", (FailedElsewhere(how="compile"),)),
        ("crash", (FailedElsewhere(how="unknown"),)),
        ("unavailable", (FailedElsewhere(how="invalid"),)),
        ("crash", (FailedElsewhere(how="runtime"),)),
    ]
    assert "neither a time nor a failure: 6, 7" in run.note
    again = the_run(write(run))
    assert again.results == run.results
    assert digest(again) == digest(run)
    written = json.loads(write(run))["cache"]
    assert [e["time"] for e in written.values()] == [
        0.5, "CompilationFailedConfig", 1e20, "InvalidConfig", "RuntimeFailedConfig",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("raw", "path", "words"),
    [
        (cache({"b": 1, "time": "soon"}), '$.cache["1"].time', "'soon' is no number"),
        (cache({"b": 1, "time": -1}), '$.cache["1"].time', "outside"),
        (cache({"time": 1}), '$.cache["None"].b', "no value of a parameter"),
        (cache({"b": [1], "time": 1}), '$.cache["[1]"].b', "no value of a parameter"),
        (cache({"b": 1, "time": 1}, tune_params_keys=["b,c"]), "$.tune_params_keys[0]", "cannot be the name"),
        (cache({"b": 1, "time": 1}, tune_params_keys=[]), "$.tune_params_keys", "names no parameter"),
        (cache({"b": 1, "time": 1}, cache={"1": {"b": 1, "time": 1}, "x": {"b": 1, "time": 2}}), '$.cache["x"]', "same values"),
        (cache(), "$.cache", "no configuration in it"),
        (cache({"b": 1, "time": 1}, tune_params={"b": [1] * 100_001}), "$.tune_params", "at most 100,000 are read"),
        (cache({"b": 1, "time": 1, "compile_time": -4}), '$.cache["1"].compile_time', "no duration"),
    ],
    ids=range(10),
)  # fmt: skip
def test_a_bad_file_is_refused_with_the_place(raw: bytes, path: str, words: str) -> None:
    with pytest.raises(DocumentError) as refused:
        read(raw)
    assert refused.value.path == path
    assert words in str(refused.value)


def test_sizes_that_are_no_whole_numbers_are_unknown() -> None:
    for size in ("callable", [64, "n"], [0], [1, 2, 3, 4], None, True, 1.5):
        assert the_run(cache({"b": 1, "time": 1}, problem_size=size)).plan.problems[0].sizes == {}
    assert the_run(cache({"b": 1, "time": 1})).plan.problems[0].sizes == {"x": 64, "y": 32}


def test_a_tuning_of_this_project_is_written_as_a_cache_that_kernel_tuner_reads() -> None:
    run = tunings.run()
    raw = write(run)
    assert raw[-3:] == b"}\n}", "how Kernel Tuner sees that a file is closed"
    whole = json.loads(raw)
    assert whole["tune_params_keys"] == ["block", "warps", "parts"]
    assert whole["tune_params"] == {"block": list(tunings.BLOCKS), "warps": list(tunings.WARPS), "parts": [1, 2, 4]}
    assert len(whole["cache"]) == 144
    first = whole["cache"]["64,4,1"]
    cold = run.results[0].timing and run.results[0].timing.device_cold_s
    assert cold
    assert first["time"] / 1000 == cold.estimate
    assert {e["time"] for e in whole["cache"].values() if isinstance(e["time"], str)} == {
        "CompilationFailedConfig",
        "RuntimeFailedConfig",
    }
    once = the_run(raw)
    assert the_run(write(once)) == once
    assert len(once.results) == 144


@pytest.mark.parametrize(
    "run", [tunings.run(), the_run(peers.kernel_tuner("mixed")), samples.mixed(), samples.run([])],
    ids=["tuning", "theirs", "sizes", "nothing"],
)  # fmt: skip
def test_t4_has_the_schema_of_t4(run: Run) -> None:
    whole = json.loads(exports()["t4"].encode(run))
    jsonschema.validate(whole, T4_SCHEMA)
    assert len(whole["results"]) == len(run.results)


def test_t4_says_correct_only_of_what_was_checked() -> None:
    ours = json.loads(exports()["t4"].encode(tunings.run()))["results"]
    assert {(r["invalidity"], r["correctness"]) for r in ours} == {("correct", 1), ("compile", 0), ("correctness", 0)}
    theirs = json.loads(exports()["t4"].encode(the_run(peers.kernel_tuner())))["results"]
    assert {(r["invalidity"], r["correctness"]) for r in theirs} == {("correct", 0)}
    assert {"name": "correctness check", "value": "not checked", "unit": ""} in theirs[0]["measurements"]
    assert theirs[0]["configuration"] == {"block_size_x": 128}
    assert theirs[0]["times"]["runtimes"][0] == 0.1268800050020218


def test_a_time_of_one_block_is_marked_in_both_files() -> None:
    run = tunings.many(40)
    entries = json.loads(write(run))["cache"].values()
    stopped = [e for e in entries if e.get("stopped_early")]
    assert len(stopped) == 3
    assert all(len(e["times"]) == 1 for e in stopped)
    t4 = json.loads(exports()["t4"].encode(run))["results"]
    assert sum(m["name"] == "stopped early" for r in t4 for m in r["measurements"]) == 3


def test_what_was_cancelled_is_in_neither_file() -> None:
    run = tunings.run()
    last = run.results[-1]
    given_up = samples.failed(last.problem, last.variant, "cancelled", "cancelled")
    run = msgspec.structs.replace(run, results=(*run.results[:-1], given_up), status="cancelled")
    assert len(json.loads(write(run))["cache"]) == len(json.loads(exports()["t4"].encode(run))["results"]) == 143


def test_a_run_of_several_sizes_has_its_variants_and_sizes_as_parameters() -> None:
    whole = json.loads(write(samples.mixed()))
    assert whole["tune_params_keys"][0] == "variant"
    assert set(whole["tune_params_keys"]) > {"variant"}
    assert len(whole["cache"]) == len(samples.mixed().results)


@settings(deadline=None, max_examples=40)
@given(drawn_runs.runs)
def test_every_run_is_json_in_both_formats(run: Run) -> None:
    assert json.loads(write(run))["tune_params_keys"] is not None
    jsonschema.validate(json.loads(exports()["t4"].encode(run)), T4_SCHEMA)
