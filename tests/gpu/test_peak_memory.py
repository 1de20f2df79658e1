"""Peak memory of a call on a GPU, beside the counter of torch's allocator round the same work, written out by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from figures import record
from parts import part

from kernelviz.bench import Bench
from kernelviz.core import Method, PeakMemory, RunRequest

pytestmark = [part("smoke"), pytest.mark.gpu, pytest.mark.xdist_group("gpu"), pytest.mark.timeout(300)]

M, N, LONG = 8192, 4096, 2**26
BLOCK_BYTES = 512
"""The allocator counts in blocks of this size."""


def eager_gelu() -> Callable[[], object]:
    import torch

    x = torch.randn(LONG, device="cuda")
    return lambda: torch.nn.functional.gelu(x)


def eager_rmsnorm_of_single_steps() -> Callable[[], object]:
    import torch

    x, w = torch.randn(M, N, device="cuda", dtype=torch.bfloat16), torch.randn(N, device="cuda", dtype=torch.bfloat16)
    return lambda: torch.nn.functional.rms_norm(x, (N,), w)


def compiled_softmax() -> Callable[[], object]:
    import torch

    x = torch.randn(M, N, device="cuda")
    compiled = torch.compile(lambda x: torch.softmax(x, -1), dynamic=False)
    return lambda: compiled(x)


def compiled_layernorm() -> Callable[[], object]:
    import torch

    x, w, b = torch.randn(M, N, device="cuda"), torch.randn(N, device="cuda"), torch.randn(N, device="cuda")
    compiled = torch.compile(lambda x, w, b: torch.nn.functional.layer_norm(x, (N,), w, b), dynamic=False)
    return lambda: compiled(x, w, b)


def own(op: str, variant: str, shapes: tuple[tuple[int, ...], ...], dtype: str) -> Callable[[], object]:
    """Bound by hand, so what it holds is part of the peak."""
    import torch

    from kernelviz.ops import op_named

    inputs = [torch.randn(shape, device="cuda", dtype=getattr(torch, dtype)) for shape in shapes]
    bind = op_named(op).variant_named(variant).bind
    held: list[Callable[[], object]] = []

    def work() -> object:
        if not held:
            held.append(bind(*inputs))
        return held[0]()

    return work


CASES: dict[tuple[str, str, str], tuple[dict[str, str], Callable[[], Callable[[], object]]]] = {
    ("gelu", "torch_eager", "fp32"): ({"n": str(LONG)}, eager_gelu),
    ("rmsnorm", "torch_eager", "bf16"): ({"m": str(M), "n": str(N)}, eager_rmsnorm_of_single_steps),
    ("softmax", "torch_compile", "fp32"): ({"m": str(M), "n": str(N)}, compiled_softmax),
    ("layernorm", "torch_compile", "fp32"): ({"m": str(M), "n": str(N)}, compiled_layernorm),
    ("cumsum", "cuda_look_back", "fp32"): (
        {"n": str(LONG)},
        lambda: own("cumsum", "cuda_look_back", ((LONG,),), "float32"),
    ),
    ("matmul", "cuda_skinny", "bf16"): (
        {"m": "16", "n": "6144", "k": "4096"},
        lambda: own("matmul", "cuda_skinny", ((16, 4096), (4096, 6144)), "bfloat16"),
    ),
}


def by_hand_bytes(made: Callable[[], Callable[[], object]]) -> int:
    """The peak of a call after a first one, above what was allocated before the first; the inputs are there before."""
    import torch

    call = made()
    torch.cuda.synchronize()
    before_bytes = torch.cuda.memory_allocated()
    call()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    call()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before_bytes


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(case[:2]))
def test_peak_memory_is_that_of_the_same_call_by_hand(bench: Bench, case: tuple[str, str, str]) -> None:
    op, variant, dtype = case
    sizes, made = CASES[case]
    request = RunRequest(op=op, sizes=sizes, variants=(variant,), baseline=variant, dtype=dtype, device="cuda:0")
    run_id = bench.run(bench.plan(request), Method(budget_s=0.1), owner="test")
    for _ in bench.follow(run_id, timeout_s=200):
        pass
    (result,) = bench.load(run_id).results
    assert isinstance(result.memory, PeakMemory), result.outcome
    expected_bytes = by_hand_bytes(made)
    record(f"peak memory {op} {variant}", {"call_bytes": result.memory.call_bytes, "by_hand_bytes": expected_bytes})
    assert expected_bytes > 0
    assert abs(result.memory.call_bytes - expected_bytes) <= BLOCK_BYTES
