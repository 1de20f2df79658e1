"""Rings of `cuda_slab_stages` with other threads, stages and bytes, as a plug-in, and a table of their times (a minute on a GPU):

    python tests/candidates/slab_rings.py [PART_OF_A_LINE …]

To finish: set RING of kernelviz/ops/kernels/row_slabs.py to the fastest, name `cuda_slab_stages` in the rules (best.py), and
delete this file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from kernelviz.ops.catalog.variant import Launch, Variant, variant
from kernelviz.ops.kernels.row_slabs import RING, SlabRing

if TYPE_CHECKING:
    from torch import Tensor

RINGS = {
    "t128_s3_8k": RING,
    "t128_s4_8k": SlabRing(threads=128, stages=4, slab_bytes=8192),
    "t128_s2_16k": SlabRing(threads=128, stages=2, slab_bytes=16384),
    "t64_s4_4k": SlabRing(threads=64, stages=4, slab_bytes=4096),
    "t256_s3_16k": SlabRing(threads=256, stages=3, slab_bytes=16384),
    "t256_s4_8k": SlabRing(threads=256, stages=4, slab_bytes=8192),
    "t128_s3_8k_e16": SlabRing(threads=128, stages=3, slab_bytes=8192, elements=16),
    "t64_s1_4k": SlabRing(threads=64, stages=1, slab_bytes=4096),
    "t32_s1_2k": SlabRing(threads=32, stages=1, slab_bytes=2048),
    "t128_s1_8k": SlabRing(threads=128, stages=1, slab_bytes=8192, resident=1536),
    "t128_s2_8k": SlabRing(threads=128, stages=2, slab_bytes=8192, resident=1536),
}
PROBLEMS = (
    ("row_sum", "bf16", 500_000, 100, "forward", 27.8),
    ("row_sum", "fp32", 1_000_000, 32, "forward", 31.4),
    ("row_sum", "bf16", 2_000_000, 3, "forward", 0.0),
    ("argmax", "bf16", 1_000_000, 50, "forward", 129.3),
    ("layernorm", "bf16", 200_000, 150, "forward", 42.3),
    ("rmsnorm", "bf16", 400_000, 64, "forward", 22.9),
    ("add_rmsnorm", "bf16", 753_998, 21, "forward", 48.9),
    ("softmax", "bf16", 1_000_003, 21, "forward", 77.0),
    ("softmax", "fp16", 100_000, 333, "backward", 55.0),
    ("norm_activation", "bf16", 300_000, 96, "forward", 67.5),
    ("row_sum", "bf16", 20_000, 50, "forward", 0.0),
    ("layernorm", "bf16", 5_000, 150, "forward", 0.0),
)
"""Op, number format, rows, their length, direction, and what torch.compile took on an H200, in us."""


def bind_forward(op: str, ring: SlabRing, *tensors: Tensor) -> Launch:
    """A launch with this ring."""
    from kernelviz.ops.norm_activation import cuda_slab as norm_activation
    from kernelviz.ops.normalisation import cuda_slab as normalisation
    from kernelviz.ops.normalisation.cuda import NormInputs
    from kernelviz.ops.normalisation.reference import EPS
    from kernelviz.ops.normalisation.variants import named_inputs
    from kernelviz.ops.row_reduction import cuda_slab as row_reduction
    from kernelviz.ops.softmax import cuda_slab as softmax

    if op in ("row_sum", "argmax"):
        return row_reduction.bind_slab(tensors[0], argmax=op == "argmax", ring=ring)
    if op == "softmax":
        return softmax.bind_slab(tensors[0], ring=ring)
    if op == "norm_activation":
        return norm_activation.bind_slab(*tensors, eps=EPS, ring=ring)
    return normalisation.bind_slab(NormInputs(**named_inputs(op, tensors), eps=EPS), ring=ring)


def bind_backward(ring: SlabRing, x_MN: Tensor, dy_MN: Tensor) -> Launch:
    """A launch of the backward pass of softmax with this ring."""
    from kernelviz.ops.softmax import cuda_slab as softmax

    return softmax.bind_slab_backward(x_MN, dy_MN, ring=ring)


def _variant(op: str, name: str, ring: SlabRing) -> Variant:
    bind: Callable[..., Launch] = partial(bind_forward, op, ring)
    bind.__name__, bind.__doc__ = name, f"{ring}."  # type: ignore[attr-defined]
    more: dict[str, Any] = {"backward": partial(bind_backward, ring)} if op == "softmax" else {}
    return variant(op=op, backend="cuda", needs=("nvrtc", "cuda", "sm_90"), **more)(bind)


for _op in {problem[0] for problem in PROBLEMS}:
    for _name, _ring in RINGS.items():
        globals()[f"{_op}_{_name}"] = _variant(_op, _name, _ring)


def main(parts: list[str]) -> int:
    """Print the cold device times in us of each ring and of `cuda_slab`; what fails is printed below its line."""
    import kernelviz as kv
    from kernelviz.core import Timing

    names = ("cuda_slab", *RINGS)
    print(f"{'':44s}{'compile':>9s}", *(f"{name:>15s}" for name in names), flush=True)  # noqa: T201
    for op, dtype, m, n, direction, library_us in PROBLEMS:
        line = f"{op} {dtype} m={m} n={n} {direction}"
        if parts and not any(part in line for part in parts):
            continue
        report = kv.run(
            op,
            sizes={"m": m, "n": n},
            dtype=dtype,
            direction=direction,
            variants=names,
            figures=("cold",),
            budget_s=0.05,
            plugins=(__file__,),
        )
        times = {
            r.variant: r.outcome.device_cold_s.estimate * 1e6
            for r in report.results
            if isinstance(r.outcome, Timing) and r.outcome.device_cold_s is not None
        }
        cells = (f"{times[name]:15.2f}" if name in times else f"{'-':>15s}" for name in names)
        print(f"{line:44s}{library_us:9.1f}", *cells, flush=True)  # noqa: T201
        for case, failure in report.failures.items():
            print("   ", case, failure, flush=True)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
