"""Other tools' own files, against what somebody read in them by hand; what they do not say is unknown here too."""

from __future__ import annotations

import json
from typing import Any

import peers
import pytest

from kernelviz.core.errors import DocumentError
from kernelviz.core.reasons import Skipped
from kernelviz.core.result import Failure, Result, Timing
from kernelviz.core.run import Run
from kernelviz.formats import encode, read
from kernelviz.metrics import foreign_times
from kernelviz.metrics.comparison import compare
from kernelviz.metrics.rows import rows
from kernelviz.metrics.summary import summary
from kernelviz.metrics.verdict_reasons import OtherTool
from kernelviz.text import describe_pair

NVBENCH = read(peers.nvbench())
BY_HAND = {
    # benchmark: (states on each of the two devices, those that were skipped, axes that are sizes)
    "simple": (1, 0, ()),
    "single_float64_axis": (11, 0, ()),
    "copy_sweep_grid_shape": (9, 0, ("BlockSize", "NumBlocks")),
    "copy_type_sweep": (6, 0, ()),
    "copy_type_conversion_sweep": (36, 19, ()),
}


def failed(run: Run) -> list[Result]:
    return [r for r in run.results if isinstance(r.outcome, Failure)]


def timing(result: Result) -> Timing:
    assert isinstance(result.outcome, Timing)
    return result.outcome


def test_nvbench_has_a_run_for_each_benchmark_on_each_device_with_every_state() -> None:
    assert [(r.plan.op, r.environment.device.name) for r in NVBENCH] == [
        (op, device) for op in BY_HAND for device in ("Quadro GV100", "Quadro GP100")
    ]
    for run in NVBENCH:
        cases, skipped, axes = BY_HAND[run.plan.op]
        assert (len(run.results), len(failed(run)), tuple(run.plan.problems[0].sizes)) == (cases, skipped, axes)
        assert len(run.plan.cases()) == cases
        assert run.status == "finished"
    assert sum(len(r.results) for r in NVBENCH) == 126


def test_nvbench_times_are_those_of_the_file() -> None:
    simple = NVBENCH[0]
    assert simple.environment.device.id == "cuda:0"
    assert simple.environment.device.memory_bytes == 34086060032
    assert simple.environment.device.last_level_cache_bytes == 6291456
    assert simple.environment.device.multiprocessors == 80
    assert simple.environment.device.compute_capability == (7, 0)
    assert simple.environment.versions == {"nvbench": "0.1.0 (348acbd6eb75)"}
    times = timing(simple.results[0]).other_times
    assert {name: (f.estimate, f.timer) for name, f in times.items()} == {
        "GPU time, cold": (0.0010034715849794225, "events"),
        "GPU time, batch": (0.001001475909284053, "events"),
        "CPU time, cold": (0.0010094458717434867, "host"),
    }
    assert times["GPU time, cold"].method == (
        "nvbench: mean of 499 isolated calls, L2 flushed before each, by CUDA events; standard deviation 0.0578 %"
    )
    grid = {tuple(r.problem.sizes.values()): r for r in NVBENCH[4].results}
    assert timing(grid[256, 64]).other_times["GPU time, cold"].estimate == pytest.approx(2.166e-3, rel=1e-3)
    conversions = {r.variant: r.outcome for r in NVBENCH[8].results}
    assert conversions["In=I8 Out=I8"] == Failure(
        stage="unavailable", reasons=(Skipped(),), message="Not a conversion: InputType == OutputType."
    )
    durations = [r.variant for r in NVBENCH[2].results]
    assert len(set(durations)) == 11
    assert all(v.startswith("Duration=") for v in durations)


def test_nothing_is_invented() -> None:
    for run in (*NVBENCH, *read(peers.gbench()), *read(peers.gbench("repetitions"))):
        assert run.method.figures == ()
        assert run.method.clock is None
        assert run.environment.roofs == ()
        assert foreign_times.alone(run)
        for result in run.results:
            assert (result.problem.dtype, result.problem.direction, result.problem.data) == ("unknown", None, None)
            assert result.cost is None
            assert result.accuracy is None
            assert result.kernels == ()
            if isinstance(result.outcome, Timing):
                assert result.outcome.figures == {}
                for figure in result.outcome.other_times.values():
                    assert (figure.low, figure.high, figure.blocks, figure.buffers) == (None, None, None, None)
                    assert figure.method
        assert summary(rows(run, ())) is None, "no winner among times that nobody may compare"
        assert read(encode(run)) == (run,)
    assert {r.created_at for r in NVBENCH} == {""}


def test_google_benchmark_cases_are_names_with_a_time() -> None:
    (run,) = read(peers.gbench())
    assert [r.variant for r in run.results] == [
        "BM_SameTimes", "BM_2xFaster", "BM_2xSlower", "BM_1PercentFaster", "BM_1PercentSlower", "BM_10PercentFaster",
        "BM_10PercentSlower", "BM_100xSlower", "BM_100xFaster", "BM_10PercentCPUToTime", "BM_ThirdFaster",
        "BM_NotBadTimeUnit", "BM_DifferentTimeUnit", "BM_hasLabel",
    ]  # fmt: skip
    assert run.note.endswith("Left out because they have no time: MyComplexityTest.")
    by_name = {r.variant: timing(r).other_times for r in run.results}
    assert by_name["BM_100xFaster"]["real time"].estimate == pytest.approx(10e-6)
    assert by_name["BM_NotBadTimeUnit"]["real time"].estimate == 0.4
    assert by_name["BM_NotBadTimeUnit"]["CPU time"].estimate == 0.5
    assert by_name["BM_SameTimes"]["real time"].samples is None
    assert run.created_at == "2016-08-02T17:44:46"
    assert run.environment.device.threads == 4


def test_two_files_of_one_tool_are_compared_by_their_ratio_without_a_verdict() -> None:
    """The file has no samples of this time, so nothing is known of its interval, but a reader wants the ratio."""
    slower = json.loads(peers.gbench())
    for case in slower["benchmarks"]:
        case["real_time"] = case.get("real_time", 1) * 1.5
    (before,), (after,) = read(peers.gbench()), read(json.dumps(slower).encode())
    compared = compare(before, after)
    assert len(compared.pairs) == len(before.results)
    assert {pair.reason for pair in compared.pairs} == {OtherTool("real time")}
    assert all(
        p.ratio is not None and p.ratio.estimate == pytest.approx(1.5) and p.ratio.low is None for p in compared.pairs
    )
    assert compared.judged == ()
    said = str(describe_pair(compared.pairs[0]))
    assert said.startswith("⊘ not comparable: the files of another tool have no samples of real time")
    assert said.endswith("(1.500× slower)")


def test_google_benchmark_repetitions_are_samples_of_one_case() -> None:
    (run,) = read(peers.gbench("repetitions"))
    found = {r.variant: timing(r).other_times for r in run.results}
    assert list(found) == ["BM_One", "BM_Two", "short", "medium"]
    two = found["BM_Two"]["real time"]
    assert two.samples == (9e-9, 8e-9) == tuple(s * 1e-9 for s in (9, 8)) or two.samples == pytest.approx((9e-9, 8e-9))
    assert two.estimate == pytest.approx(8.5e-9)
    assert two.method == "google-benchmark: median of 2 repetitions, each the mean of 1000 calls"
    assert list(found["short"]) == ["real time", "real time, aggregate 2", "CPU time", "CPU time, aggregate 2"]
    assert "does not say what it is" in (found["BM_One"]["real time"].method or "")


def entry(**fields: Any) -> dict[str, Any]:
    return {"name": "BM_x/64", "iterations": 10, "real_time": 5.0, "cpu_time": 4.0, "time_unit": "us"} | fields


def gbench(*entries: dict[str, Any], **context: Any) -> bytes:
    return json.dumps({"context": context, "benchmarks": entries}).encode()


def test_google_benchmark_of_today() -> None:
    """Named arguments, threads, aggregates with their units, errors, and a time that is not finite (a bare NaN)."""
    repeated = [entry(run_name="BM_x/n:64/threads:2", name="BM_x/n:64/threads:2", real_time=t) for t in (5.0, 7.0, 6.0)]
    told = {"run_name": "BM_x/n:64/threads:2", "run_type": "aggregate"}
    aggregates = [
        entry(name="BM_x/n:64/threads:2_median", aggregate_name="median", aggregate_unit="time", real_time=6.0, **told),
        entry(name="BM_x/n:64/threads:2_cv", aggregate_name="cv", aggregate_unit="percentage", real_time=0.2, **told),
        entry(name="BM_x/n:64/threads:2_max", aggregate_name="max", aggregate_unit="time", real_time=7.0, **told),
    ]
    failing = entry(name="BM_bad/n:8/threads:1", error_occurred=True, error_message="<b>no</b> device", real_time=0.0)
    raw = gbench(
        *repeated, *aggregates, failing, date="2026-11-21T10:42:00+01:00", host_name="box", executable="/opt/bin/bench_copy",
        library_version="v1.9.4",
    )  # fmt: skip
    bare = raw.replace(b'"cpu_time": 4.0', b'"cpu_time": NaN')
    (run,) = read(bare)
    assert run.plan.op == "bench_copy"
    assert run.created_at == "2026-11-21T09:42:00+00:00"
    assert run.environment.host == "box"
    good, bad = run.results
    assert (good.variant, good.problem.sizes) == ("BM_x", {"n": 64, "threads": 2})
    assert list(timing(good).other_times) == ["real time", "real time, max"]
    assert timing(good).other_times["real time"].estimate == pytest.approx(6e-6)
    assert bad.outcome == Failure(stage="crash", message="<b>no</b> device")


def test_benchmarks_with_other_arguments_are_runs_of_their_own() -> None:
    runs = read(gbench(entry(name="BM_x/64"), entry(name="BM_x/128"), entry(name="BM_y"), entry(name="BM_z/64/8")))
    assert [tuple(r.plan.problems[0].sizes) for r in runs] == [("arg1",), (), ("arg1", "arg2")]
    assert [len(r.results) for r in runs] == [2, 1, 1]


@pytest.mark.parametrize(
    ("raw", "path", "words"),
    [
        (gbench(entry(time_unit="fortnight")), "$.benchmarks[0].time_unit", "is not a unit of time"),
        (gbench(entry(real_time="fast")), "$.benchmarks[0].real_time", "Expected `float | null`, got `str`"),
        (
            gbench(entry(real_time=1e300, cpu_time=-1)),
            "$.benchmarks",
            "no benchmark in it has a time: BM_x/64, real time",
        ),
        (gbench({"iterations": 1}), "$.benchmarks[0]", "missing required field `name`"),
        (gbench(), "$.benchmarks", "no benchmark in it has a time"),
        (gbench(entry(name="x" * 3000)), "$.benchmarks", "a name of 3000 characters"),
    ],
)
def test_a_bad_google_benchmark_file_is_refused_with_row_and_field(raw: bytes, path: str, words: str) -> None:
    with pytest.raises(DocumentError, match=words.replace("|", r"\|")) as refused:
        read(raw)
    assert refused.value.path == path


def changed(change: Any) -> bytes:
    document = json.loads(peers.nvbench())
    change(document["benchmarks"][2]["states"][3], document)
    return json.dumps(document).encode()


def value(state: dict[str, Any], tag: str) -> dict[str, Any]:
    found: dict[str, Any] = next(s for s in state["summaries"] if s["tag"] == tag)["data"][0]
    return found


NOISE, MEAN = "nv/cold/time/gpu/stdev/relative", "nv/cold/time/gpu/mean"
STATE = "$.benchmarks[2].states[3]"


@pytest.mark.parametrize(
    ("change", "path", "words"),
    [
        (lambda s, _: value(s, MEAN).update(value="quick"), f"{STATE}.summaries[3].data[0].value", "'quick' is no number"),
        (lambda s, _: value(s, MEAN).update(value="-1"), f"{STATE}.summaries[3].data[0].value", "outside"),
        (lambda s, _: s["axis_values"][0].update(value="2^7"), f"{STATE}.axis_values[0].value", "no whole number"),
        (lambda s, _: s["axis_values"].pop(), f"{STATE}.axis_values", "differ from those of the first state"),
        (lambda s, d: s.update(axis_values=d["benchmarks"][2]["states"][2]["axis_values"]), f"{STATE}.axis_values", "earlier"),
        (lambda s, _: s.update(device=7), f"{STATE}.device", "the file has no device 7"),
        (lambda _, d: d.update(benchmarks=[]), "$.benchmarks", "no benchmark in it has a state"),
    ],
)  # fmt: skip
def test_a_bad_nvbench_file_is_refused_with_row_and_field(change: Any, path: str, words: str) -> None:
    with pytest.raises(DocumentError) as refused:
        read(changed(change))
    assert refused.value.path == path
    assert words in str(refused.value)


def test_noise_that_is_infinite_is_unknown() -> None:
    found = read(changed(lambda s, _: value(s, NOISE).update(value=None)))[4].results[3]
    method = timing(found).other_times["GPU time, cold"].method or ""
    assert method.endswith("standard deviation unknown")


def test_a_summary_without_a_tag_is_no_noise() -> None:
    untagged = {"name": "x", "data": [{"name": "value", "type": "string", "value": "abc"}]}
    found = read(changed(lambda s, _: s["summaries"].append(untagged)))[4].results[3]
    assert timing(found).other_times == timing(read(peers.nvbench())[4].results[3]).other_times


def test_a_mean_that_is_unknown_is_no_time() -> None:
    found = read(changed(lambda s, _: value(s, MEAN).update(value=None)))[4].results[3]
    assert list(timing(found).other_times) == ["GPU time, batch", "CPU time, cold"]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (
            b"{}",
            "its format is not supported; supported are kernelviz JSON, google-benchmark JSON, Kernel Tuner cache, "
            "kernelviz compact run (.kvz), Nsight Compute CSV, nvbench JSON, kernelviz Parquet",
        ),
        (b"a,b\n1,2\n", "its format is not supported"),
        (b"[1, 2]", "its format is not supported"),
        (b'{"cache": {}}', "its format is not supported"),
        (b'{"context": {}, "benchmarks": [', "cannot be read as JSON"),
        (b"\x1f\x8b\x08\x00", "unpack it first"),
        (b'{"schema":"kernelviz-backup/1"}\n', "a backup of a whole store"),
        (b"PAR1garbagePAR1", "cannot be read as Parquet"),
    ],
)
def test_a_file_of_no_format_says_which_are_read(raw: bytes, words: str) -> None:
    with pytest.raises(DocumentError) as refused:
        read(raw)
    assert words in str(refused.value)


def test_a_mark_at_the_beginning_is_no_part_of_the_file() -> None:
    assert read(b"\xef\xbb\xbf" + peers.gbench()) == read(peers.gbench())


def deep(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


@pytest.mark.parametrize("depth", [500, 100_000, 2_000_000])
@pytest.mark.parametrize(
    "inside",
    [b"%s", b'{"context": {"date": %s}, "benchmarks": []}', b'{"devices": [], "benchmarks": %s}',
     b'{"schema": "kernelviz/1", "x": %s}', b'{"context": {"x": NaN}, "benchmarks": %s}'],
)  # fmt: skip
def test_what_is_nested_deeply_is_refused(depth: int, inside: bytes) -> None:
    with pytest.raises(DocumentError):
        read(inside % deep(depth))


def test_large_files() -> None:
    """50 MB are read where they say something that can be, and a larger file of another tool is not even looked through."""
    padded = peers.gbench().replace(b"{", b"{" + b" " * 50_000_000, 1)
    assert read(padded) == read(peers.gbench())
    with pytest.raises(DocumentError, match="a name of 50000000 characters"):
        read(gbench(entry(name="x" * 50_000_000)))
    with pytest.raises(DocumentError, match="files of more than 67 MB are not read"):
        read(padded + b" " * 20_000_000)
    with pytest.raises(DocumentError, match="files of more than 168 MB are not read"):
        read(b"{" + b" " * (160 * 2**20))


def test_a_file_of_very_many_runs_is_refused() -> None:
    many = [entry(name="/".join(["BM_x", *(f"a{i}x{j}:1" for j in range(2))])) for i in range(1001)]
    with pytest.raises(DocumentError, match=r"it holds 1,001 runs .*; at most 1,000 are read"):
        read(gbench(*many))
