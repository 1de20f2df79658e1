"""Two runs to compare: a sample run, and a copy with the changes of a test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import sample_runs as samples

from kernelviz.core.result import Figure, Result, Stage, Timing
from kernelviz.core.run import Run

VARIANTS = {"torch_eager": 0.60, "triton_block_per_row": 0.91, "triton_persistent": 0.96}


def before() -> Run:
    """A: three variants at six sizes, right everywhere, with warm times too."""
    made = samples.run(id="before", title="before", shares=VARIANTS)
    return msgspec.structs.replace(made, results=tuple(_warm(r) for r in made.results))


def after(
    slower: Mapping[str, float] | None = None,
    *,
    wrong: str = "",
    method: Mapping[str, Any] | None = None,
    device: Mapping[str, Any] | None = None,
    versions: Mapping[str, str] | None = None,
    figure: Mapping[str, Any] | None = None,
) -> Run:
    """B: the variants of `slower` have another source and take so many times as long, all others are A's code measured anew.

    `wrong`: a variant that is wrong at the largest size. `figure`: fields of every cold time.
    """
    a, results = before(), []
    for n, result in enumerate(a.results):
        by = (slower or {}).get(result.variant)
        made = again(result, 1.0 if by is None else by, seed=1000 + n, figure=figure)
        if by is not None:
            made = msgspec.structs.replace(made, source_digest="changed")
        if result.variant == wrong and result.problem == a.plan.problems[-1]:
            stage: Stage = "wrong"
            made = samples.failed(result.problem, result.variant, stage)
        results.append(made)
    here = a.environment
    environment = msgspec.structs.replace(
        here,
        device=msgspec.structs.replace(here.device, **(device or {})),
        versions={**here.versions, **(versions or {})},
    )
    return msgspec.structs.replace(
        a, id="after", title="after", created_at="2026-11-22T11:00:00+00:00", results=tuple(results),
        environment=environment, method=msgspec.structs.replace(a.method, **(method or {})),
    )  # fmt: skip


def again(result: Result, longer: float, *, seed: int, figure: Mapping[str, Any] | None = None) -> Result:
    """The case measured anew: other samples and rounds, so many times as long."""
    assert isinstance(result.outcome, Timing)
    assert result.outcome.device_cold_s is not None
    cold = _anew(result.outcome.device_cold_s, longer, seed)
    outcome = msgspec.structs.replace(
        result.outcome,
        device_cold_s=msgspec.structs.replace(cold, **(figure or {})),
        device_warm_s=_anew(result.outcome.device_cold_s, longer * 0.5, seed + 7),
        again_s=None if result.outcome.again_s is None else _anew(result.outcome.again_s, longer, seed + 5000),
    )
    return msgspec.structs.replace(result, outcome=outcome)


def _anew(figure: Figure, longer: float, seed: int) -> Figure:
    made = samples.figure(figure.estimate / 1.0031 * longer, seed=seed)
    assert made.blocks is not None
    blocks = tuple(msgspec.structs.replace(b, round=10_000 + i) for i, b in enumerate(made.blocks))
    return msgspec.structs.replace(made, blocks=blocks)


def _warm(result: Result) -> Result:
    assert isinstance(result.outcome, Timing)
    cold = result.outcome.device_cold_s
    assert cold is not None
    warm = samples.figure(cold.estimate / 1.0031 * 0.5, seed=7)
    return msgspec.structs.replace(result, outcome=msgspec.structs.replace(result.outcome, device_warm_s=warm))
