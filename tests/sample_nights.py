"""Runs of one case night after night, with a change in the middle: for trends."""

from __future__ import annotations

import msgspec
import numpy as np
import sample_runs as samples

from kernelviz.core.result import Figure, Result, Timing
from kernelviz.core.run import Device, Run

CHANGED = 8
"""The first night on which triton_persistent is 4 % slower, from another source under another torch."""


def nights(count: int = 14, device: Device = samples.H200, *, seed: int = 1) -> list[Run]:
    """`count` runs, a day apart, of two variants at one size; 0.2 % of noise from night to night."""
    rng = np.random.default_rng(seed)
    problem = samples.problems("rmsnorm", [{"m": 4096, "n": 4096}])[0]
    found = []
    for night in range(count):
        later = night >= CHANGED
        results = [
            _scaled(samples.timed(problem, name, share, device=device), rng.normal(0, 0.002) + extra, f"source{source}")
            for name, share, extra, source in (
                ("torch_eager", 0.5, 0.0, 0),
                ("triton_persistent", 0.8, 0.04 if later else 0.0, int(later)),
            )
        ]
        run = samples.run(results, id=f"night-{night:02}", device=device)
        versions = {**run.environment.versions, "torch": "2.13.0" if later else "2.11.0"}
        found.append(
            msgspec.structs.replace(
                run,
                created_at=f"2026-10-{night + 1:02}T03:00:00.000+00:00",
                environment=msgspec.structs.replace(run.environment, versions=versions),
            )
        )
    return found


def _scaled(result: Result, log: float, source: str) -> Result:
    assert isinstance(result.outcome, Timing)
    cold = result.outcome.device_cold_s
    assert cold is not None
    times = float(np.exp(log))

    def scaled(value: float | None) -> float | None:
        return None if value is None else value * times

    figure = Figure(
        estimate=cold.estimate * times,
        low=scaled(cold.low),
        high=scaled(cold.high),
        timer=cold.timer,
        launch=cold.launch,
    )
    return msgspec.structs.replace(result, outcome=Timing(device_cold_s=figure), source_digest=source * 2)
