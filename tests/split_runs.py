"""One run cut in two, so that both halves ran the same code on the same card: what compares them must find nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from kernelviz.core.result import Figure, Result, Timing
from kernelviz.core.run import Run
from kernelviz.metrics.statistics import figure_interval

How = Literal["alternating", "first and second"]


def halves(run: Run, how: How, slower: float = 1.0, changed: Callable[[str], bool] = lambda _: True) -> tuple[Run, Run]:
    """Two runs of half the rounds each; times of the second are `slower` as long, where the variant's source is `changed`."""

    def part(result: Result, first: bool) -> Result:
        assert isinstance(result.outcome, Timing)
        longer = slower if not first and changed(result.variant) else 1.0
        cut = {
            name: _cut(figure, how, first, longer)
            for name, figure in result.outcome.figures.items()
            if name in ("device_cold_s", "device_warm_s", "again_s", "again_warm_s")
        }
        digest = result.source_digest if first or not changed(result.variant) else "changed"
        outcome = msgspec.structs.replace(result.outcome, **cut)
        return msgspec.structs.replace(result, outcome=outcome, source_digest=digest)

    timed = [r for r in run.results if r.timing is not None]
    return tuple(  # type: ignore[return-value]
        msgspec.structs.replace(run, id=f"{run.id}-{side}", results=tuple(part(r, side == "a") for r in timed))
        for side in ("a", "b")
    )


def _cut(figure: Figure, how: How, first: bool, longer: float) -> Figure | None:
    """The figure of half of its rounds; None where none are left. The baseline's two series have the same rounds."""
    assert figure.samples is not None
    assert figure.blocks is not None
    rounds = sorted({b.round for b in figure.blocks if b.round is not None})
    mine = set(rounds[::2] if how == "alternating" else rounds[: len(rounds) // 2])
    kept = [(b.round in mine) is first for b in figure.blocks]
    samples: list[float] = []
    end = 0
    for block, keep in zip(figure.blocks, kept, strict=True):
        samples += [s * longer for s in figure.samples[end : end + block.size]] if keep else []
        end += block.size
    blocks = tuple(b for b, keep in zip(figure.blocks, kept, strict=True) if keep)
    if not blocks:
        return None
    made = figure_interval(samples, blocks)
    return msgspec.structs.replace(
        figure, estimate=made.estimate, low=made.low, high=made.high, samples=tuple(samples), blocks=blocks
    )
