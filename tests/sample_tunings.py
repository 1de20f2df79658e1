"""Tunings to look at: what a store keeps of one, and the run of one with more configurations than a chart can tell apart."""

from __future__ import annotations

import hashlib
from itertools import product

import msgspec
import sample_runs as samples

from kernelviz.core.configuration import configured_name, parted
from kernelviz.core.notes import StoppedEarly
from kernelviz.core.problem import Problem, Search
from kernelviz.core.result import Accuracy, Block, Conditions, Figure, Kernel, Result, Timing
from kernelviz.core.run import Run
from kernelviz.core.tuning import Span, Tuning

ADD = Problem(op="add", sizes={"n": 2**26}, dtype="fp32")
BLOCKS = tuple(2**e for e in range(6, 14))
WARPS = (4, 1, 2, 8, 16, 32)
PARTS = (1, 2, 4)


def tuning(
    *,
    block: int = 256,
    problem: Problem = ADD,
    variant: str = "triton_tuned",
    device_uuid: str = samples.H200.uuid,
    created_at: str = "2026-11-21T12:00:00+00:00",
    source_digest: str = "0123456789abcdef",
    run_id: str = "tuned-1",
) -> Tuning:
    return Tuning(
        problem=problem,
        variant=variant,
        device_uuid=device_uuid,
        device="NVIDIA H200",
        configuration={"block": block, "warps": 4},
        default={"block": 1024, "warps": 4},
        run_id=run_id,
        created_at=created_at,
        time_s=Span(estimate=180e-6, low=179e-6, high=181e-6),
        default_s=Span(estimate=200e-6, low=199e-6, high=201e-6),
        speed_up=Span(estimate=1.111, low=1.10, high=1.12),
        space=144,
        tried=140,
        failed=20,
        seconds=61.5,
        preparing_s=40.25,
        source_digest=source_digest,
    )


def run() -> Run:
    """A finished tuning of 144 configurations, of which 24 do not compile and six are wrong."""
    names = [
        configured_name("triton_tuned", {"block": b, "warps": w, "parts": p})
        for b in BLOCKS
        for w in WARPS
        for p in PARTS
    ]
    results = [_result(name, place) for place, name in enumerate(names)]
    made = samples.run(results, id="tuning-1", op="add", sizes=(ADD.sizes,), dtype="fp32", shares={})
    search = Search(
        variant="triton_tuned",
        space=len(names),
        admitted=len(names),
        parameters={"block": BLOCKS, "warps": WARPS, "parts": PARTS},
    )
    plan = msgspec.structs.replace(made.plan, variants=tuple(names), baseline=names[0], search=search)
    return msgspec.structs.replace(made, plan=plan)


def many(count: int = 2_000) -> Run:
    """A tuning of so many configurations of four parameters, one in eight without a time and one in ten stopped early. The time
    follows from `block` (most), `warps` and both together."""
    values = {"block": BLOCKS, "warps": WARPS, "parts": (1, 2, 3, 4, 5), "stages": tuple(range(1, 11))}
    names = [configured_name("triton_tuned", dict(zip(values, c, strict=True))) for c in product(*values.values())][
        :count
    ]
    results = [_of_many(name, place) for place, name in enumerate(names)]
    made = samples.run(results, id="tuning-many", op="add", sizes=(ADD.sizes,), dtype="fp32", shares={})
    search = Search(variant="triton_tuned", space=len(names), admitted=len(names), parameters=dict(values))
    plan = msgspec.structs.replace(made.plan, variants=tuple(names), baseline=names[0], search=search)
    return msgspec.structs.replace(made, plan=plan)


def _of_many(name: str, place: int) -> Result:
    if place % 8 == 7:
        return samples.failed(ADD, name, "compile", f"OutOfResources: shared memory, Required: {place}000")
    values = parted(name)[1] or {}
    block, warps = BLOCKS.index(values["block"]), WARPS.index(values["warps"])
    time_s = 100e-6 * (1 + 0.5 * abs(block - 4) + 0.1 * warps + 0.01 * (place % 7))
    started = f"2026-11-21T10:{place // 60 % 60:02}:{place % 60:02}+00:00"
    made = figure_result(name, time_s, blocks=1 if place % 10 == 3 else 12, measured_at=started)
    stopped = Conditions(notes=(StoppedEarly(ratio=2.0, factor=1.5),))
    return msgspec.structs.replace(made, conditions=stopped) if place % 10 == 3 else made


def figure_result(
    name: str, time_s: float, *, problem: Problem = ADD, blocks: int = 12, measured_at: str = "2026-11-21T10:00:00+00:00",
    digest: str = "0123456789abcdef", first_round: int = 0,
) -> Result:  # fmt: skip
    """A correct result of a configuration, with two samples in each block and rounds from `first_round` on."""
    samples_s = tuple(time_s * (1 + 0.001 * (n % 5)) for n in range(2 * blocks))
    of_blocks = tuple(Block(size=2, started_s=float(n), clock_hz=1.9e9, round=first_round + n) for n in range(blocks))
    known = blocks >= 10
    figure = Figure(
        estimate=time_s, low=0.999 * time_s if known else None, high=1.005 * time_s if known else None, samples=samples_s,
        blocks=of_blocks, timer="cupti", launch="graph", method="cupti",
    )  # fmt: skip
    accuracy = Accuracy(passed=True, relative_l2=1e-8, max_abs=1e-7, worst_of_bound=0.1, seeds=3, rule="exact")
    registers = 32 + 8 * (hash_of(name) % 12)
    kernel = Kernel(name="k", registers_per_thread=registers, local_memory_bytes=64 if registers > 100 else None)
    return Result(
        problem=problem, variant=name, outcome=Timing(device_cold_s=figure), accuracy=accuracy, source_digest=digest,
        configuration=parted(name)[1], backend="triton", measured_at=measured_at, kernels=(kernel,),
    )  # fmt: skip


def hash_of(name: str) -> int:
    """A number that is the same in every process."""
    return int(hashlib.sha256(name.encode()).hexdigest()[:8], 16)


def shapes(*, digest: str = "0123456789abcdef") -> tuple[tuple[Tuning, ...], dict[str, Run]]:
    """Tunings of three shapes of `add`, and the run of each by its id. At the largest shape, the configuration of the smallest
    takes 1.5 times as long, that of the middle one does not compile; at the smallest shape, nobody measured the largest's."""
    sizes, best = (2**20, 2**23, 2**26), (256, 512, 1024)
    times = {
        2**20: {256: 10e-6, 512: 11e-6},
        2**23: {256: 30e-6, 512: 24e-6, 1024: 24.5e-6},
        2**26: {256: 270e-6, 512: None, 1024: 180e-6},
    }  # fmt: skip
    made, runs = [], {}
    for size, block in zip(sizes, best, strict=True):
        problem = Problem(op="add", sizes={"n": size}, dtype="fp32")
        run_id = f"tuned-{size}"
        results = [
            samples.failed(problem, configured_name("triton_tuned", {"block": b, "warps": 4}), "compile", "no")
            if time_s is None
            else figure_result(
                configured_name("triton_tuned", {"block": b, "warps": 4}), time_s, problem=problem, digest=digest
            )
            for b, time_s in times[size].items()
        ]
        results = [msgspec.structs.replace(r, source_digest=digest) for r in results]
        run = samples.run(results, id=run_id, op="add", sizes=(problem.sizes,), dtype="fp32", shares={})
        names = tuple(r.variant for r in results)
        search = Search(
            variant="triton_tuned", space=8, admitted=8, parameters={"block": (256, 512, 1024), "warps": (4,)}
        )
        plan = msgspec.structs.replace(run.plan, variants=names, baseline=names[0], search=search)
        runs[run_id] = msgspec.structs.replace(run, plan=plan)
        made.append(tuning(block=block, problem=problem, run_id=run_id, source_digest=digest))
    return tuple(made), runs


def _result(name: str, place: int) -> Result:
    if place % 6 == 5:
        message = f"OutOfResources: out of resource: shared memory, Required: {place}000, Hardware limit: 232448"
        return samples.failed(ADD, name, "compile", message)
    if place % 24 == 10:
        return samples.failed(ADD, name, "wrong", f"the largest error is {place} times the allowed one")
    made = samples.timed(ADD, name, 0.5 + 0.4 * (place % 97) / 97, again=place == 0)
    values = {key: int(value) for key, value in (p.split("=") for p in name.split("[")[1][:-1].split(","))}
    return msgspec.structs.replace(made, backend="triton", configuration=values)
