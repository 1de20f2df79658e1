"""Export of a run as JSON of google-benchmark, for its ``tools/compare.py`` and other tools that read it (conbench, bencher).

A repetition is a block of samples, and its real time is their mean. The aggregates of google-benchmark follow; the median is the
estimate that kernelviz shows. The CPU time is the time until one call returns on the host (``enqueue_s``). It is the same in
every repetition, and 0 if it was not measured. Cases without a usable time are listed in the context with their reason, because
readers would take a missing time for 0.
"""

import io
from collections.abc import Iterator, Sequence
from statistics import mean, stdev
from typing import Any

import msgspec

import kernelviz
from kernelviz.core import Failure, Figure, Problem, Result, Run
from kernelviz.formats.export_format import Export
from kernelviz.metrics.rows import in_plan_order
from kernelviz.text import describe_failure

_HEADLINE = "device_cold_s"
_NOT_CALLS = frozenset({"again_s", "again_warm_s"})
"""The second series of the baseline, which are used for verdicts and not for a comparison of runs."""
_NS = 1e9


def encode(run: Run) -> bytes:
    """The run in UTF-8, in the format of google-benchmark's option ``--benchmark_out_format=json``."""
    results = in_plan_order(run)
    whole = msgspec.json.format(msgspec.json.encode({"context": _context(run, _failures(results)), "benchmarks": []}))
    out = io.BytesIO()
    out.write(whole.removesuffix(b"[]\n}"))
    # Written one by one, because a run of 100,000 cases has millions of entries.
    between = b"[\n    "
    for family, result in enumerate(results):
        name = case_name(result.problem, result.variant)
        for instance, (run_name, figure) in enumerate(_figures(name, result)):
            place = {"family_index": family, "per_family_instance_index": instance, "run_name": run_name, "threads": 1}
            for entry in _entries(place, figure, _cpu_ns(result, run_name == name)):
                out.write(between + _formatted(entry))
                between = b",\n    "
    out.write(b"[]\n}" if between.startswith(b"[") else b"\n  ]\n}")
    return out.getvalue()


def _failures(results: Sequence[Result]) -> dict[str, str]:
    """The cases without a usable time, with their reasons."""
    failures: dict[str, str] = {}
    for result in results:
        name = case_name(result.problem, result.variant)
        if isinstance(result.outcome, Failure):
            failures[name] = f"{result.outcome.stage}: {describe_failure(result.outcome)}"
        elif not any(_figures(name, result)):
            failures[name] = "no time: none of its calls was timed"
    return failures


def _formatted(entry: dict[str, Any]) -> bytes:
    """An entry as JSON, indented as in a document."""
    return msgspec.json.format(msgspec.json.encode(entry)).replace(b"\n", b"\n    ")


def case_name(problem: Problem, variant: str) -> str:
    """op/variant/sizes/dtype, then every unusual property. Sizes are written like named arguments of google-benchmark.

    >>> case_name(Problem(op="softmax", sizes={"m": 4096, "n": 8}, dtype="bf16"), "torch_eager")
    'softmax/torch_eager/m:4096/n:8/bf16'
    """
    unusual = [c for c in (problem.compute, problem.direction, problem.data) if c and c not in ("forward", "normal")]
    sizes = [f"{axis}:{size}" for axis, size in problem.sizes.items()]
    return "/".join([problem.op, variant, *sizes, problem.dtype, *unusual])


def _figures(name: str, result: Result) -> Iterator[tuple[str, Figure]]:
    """The times of a case by name: the headline has the name of the case, and other times add their field to it."""
    if result.timing is None or isinstance(result.outcome, Failure):
        return
    for field, figure in result.timing.figures.items():
        if field not in _NOT_CALLS:
            yield (name if field == _HEADLINE else f"{name}/{field.removesuffix('_s')}"), figure
    for other, figure in result.timing.other_times.items():
        yield f"{name}/{other}", figure


def _cpu_ns(result: Result, headline: bool) -> float:
    known = result.timing.enqueue_s if result.timing is not None and headline else None
    return 0.0 if known is None else known.estimate * _NS


def _entries(about: dict[str, Any], figure: Figure, cpu_ns: float) -> Iterator[dict[str, Any]]:
    groups = _repetitions(figure)
    name, times = about["run_name"], {"cpu_time": cpu_ns, "time_unit": "ns"}
    about = about | {"repetitions": len(groups)}
    for number, (calls, time_s) in enumerate(groups):
        kind = {"name": name, "run_type": "iteration", "repetition_index": number, "iterations": calls}
        yield kind | about | {"real_time": time_s * _NS} | times
    if len(groups) < 2:
        return
    means = [time_s for _, time_s in groups]
    for what, real, cpu, unit in (
        ("mean", mean(means) * _NS, cpu_ns, "time"),
        ("median", figure.estimate * _NS, cpu_ns, "time"),
        ("stddev", stdev(means) * _NS, 0.0, "time"),
        ("cv", stdev(means) / mean(means), 0.0, "percentage"),
    ):
        kind = {"name": f"{name}_{what}", "run_type": "aggregate", "aggregate_name": what}
        counted = {"aggregate_unit": unit, "iterations": len(groups), "real_time": real}
        yield kind | about | counted | times | {"cpu_time": cpu}


def _repetitions(figure: Figure) -> list[tuple[int, float]]:
    """The number of calls and the mean time of each block. Without blocks, each sample, or else the estimate, is one block."""
    if not figure.samples:
        return [(1, figure.estimate)]
    if not figure.blocks:
        return [(1, sample) for sample in figure.samples]
    if figure.by_block:
        return [(b.size, value) for b, value in zip(figure.blocks, figure.samples, strict=True)]
    samples = iter(figure.samples)
    return [(b.size, mean(next(samples) for _ in range(b.size))) for b in figure.blocks]


def _context(run: Run, failures: dict[str, str]) -> dict[str, Any]:
    machine = run.environment
    return {
        "date": run.created_at,
        "host_name": machine.host,
        "executable": "kernelviz",
        "num_cpus": machine.threads or machine.device.threads or 0,
        "mhz_per_cpu": 0,
        "caches": [],
        "load_avg": [],
        "library_version": f"kernelviz {kernelviz.__version__}",
        "library_build_type": "release",
        "json_schema_version": 1,
        "device": machine.device.name,
        "run": run.id,
        "cpu_time": "host time of one eager call until it returns, the same in every repetition; 0 where not measured",
        "without_a_time": failures,
    }


EXPORT = Export(
    name="gbench",
    suffix=".gbench.json",
    media_type="application/json",
    encode=encode,
    label="google-benchmark JSON, for its compare.py",
)
