"""Tunings to look at: what a store keeps of one, and the run of one with more configurations than a chart can tell apart."""

from __future__ import annotations

import msgspec
import sample_runs as samples

from kernelviz.core.configuration import configured_name
from kernelviz.core.problem import Problem, Search
from kernelviz.core.result import Result
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


def _result(name: str, place: int) -> Result:
    if place % 6 == 5:
        message = f"OutOfResources: out of resource: shared memory, Required: {place}000, Hardware limit: 232448"
        return samples.failed(ADD, name, "compile", message)
    if place % 24 == 10:
        return samples.failed(ADD, name, "wrong", f"the largest error is {place} times the allowed one")
    made = samples.timed(ADD, name, 0.5 + 0.4 * (place % 97) / 97, again=place == 0)
    values = {key: int(value) for key, value in (p.split("=") for p in name.split("[")[1][:-1].split(","))}
    return msgspec.structs.replace(made, backend="triton", configuration=values)
