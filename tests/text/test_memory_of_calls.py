"""The sentence about the memory of a call: only where the best variant and the baseline differ much."""

from __future__ import annotations

import msgspec
import sample_runs as samples

from kernelviz.core.result import PeakMemory
from kernelviz.core.run import Run
from kernelviz.metrics.rows import rows
from kernelviz.text.memory_of_calls import describe_memory_of_calls


def run_with(memory_of_best_bytes: int | None) -> Run:
    """The loss of a vocabulary: eager writes 4-byte logits."""
    made = samples.run(
        op="linear_cross_entropy",
        sizes=[{"m": m, "h": 4096, "v": 128256} for m in (1024, 8192)],
        shares={"torch_eager": 0.5, "cuda_wgmma_cluster": 0.9},
    )
    results = []
    for result in made.results:
        logits_bytes = result.problem.sizes["m"] * 128256 * 4
        own = logits_bytes if result.variant == "torch_eager" else memory_of_best_bytes
        memory = msgspec.UNSET if own is None else PeakMemory(bind_bytes=own, call_bytes=own)
        results.append(msgspec.structs.replace(result, memory=memory))
    return msgspec.structs.replace(made, results=tuple(results))


def sentence(run: Run, best: str = "cuda_wgmma_cluster") -> str | None:
    return describe_memory_of_calls(rows(run, run.environment.roofs), run.plan, best)


def test_logits_that_are_never_stored_are_said_with_the_largest_size() -> None:
    assert sentence(run_with(2**22)) == (
        "At m = 8,192, a call of cuda wgmma cluster takes 4.00 MiB of memory beside the inputs, and one of torch eager 3.91 GiB, "
        "1,002× as much."
    )


def test_a_small_difference_the_baseline_itself_and_unknown_memory_are_not_said() -> None:
    assert sentence(run_with(2**30)) is None
    assert sentence(run_with(2**22), best="torch_eager") is None
    assert sentence(run_with(None)) is None
