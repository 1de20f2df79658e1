"""`branch_divergence`: arithmetic that takes longer than its memory traffic, on two branches that g neighbours take in turn."""

from __future__ import annotations

from kernelviz.core.problem import Cost
from kernelviz.ops.branch_divergence import best
from kernelviz.ops.branch_divergence.reference import STEPS, bound, reference
from kernelviz.ops.branch_divergence.variants import VARIANTS
from kernelviz.ops.catalog.op import Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Sizes, TensorSpec


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """The branch that each element takes: 128 steps of three operations, whose instructions could be four (two multiply-adds).

    >>> cost({"n": 1024, "g": 32}, 4)
    Cost(work_flop=393216, read_bytes=4096, written_bytes=4096)
    """
    n = sizes["n"]
    return Cost(work_flop=3 * STEPS * n, read_bytes=n * itemsize_bytes, written_bytes=n * itemsize_bytes)


BRANCH_DIVERGENCE = Op(
    name="branch_divergence",
    family="elementwise",
    summary="Two branches of 128 steps that groups of g neighbours take in turn: what divergence costs",
    formula="128 times y ← y + (1 − y)/512 from y = x if ⌊i/g⌋ is even, else y ← y − y²/512 from y = |x|",
    axes=(
        Axis(name="n", caption="elements", default="2^24", cpu_default="2^16"),
        Axis(
            name="g",
            caption="neighbours that take the same branch: below 32 the lanes of a warp diverge, from 32 on whole warps",
            default="1,2,4,8,16,32,64,128",
            cpu_default="1,32",
        ),
    ),
    dtypes=("fp32",),
    inputs=(TensorSpec(name="x_N", axes=("n",)),),
    outputs=(TensorSpec(name="y_N", axes=("n",)),),
    cost=cost,
    reference=reference,
    bound=bound,
    rule="|error| ≤ 128 · 1.5 · 2⁻²⁴ · max(|x|, 1): the roundings of 128 steps, none of which makes an earlier error larger",
    baseline="torch_eager",
    best=best.divergence,
    first=("torch_eager", "triton_select", "cuda_select", "cuda_divergent", "cuda_regrouped"),
    variants=VARIANTS,
    presets=(
        Preset(
            name="lanes-and-warps",
            caption="Lanes (1, 16), parts of a warp beside each other (24, 33), whole warps (32, 256)",
            sizes={"n": "2^24", "g": "1,16,24,32,33,256"},
        ),
        Preset(
            name="small", caption="Small enough for the L2 of any GPU", sizes={"n": "2^18", "g": "1,2,4,8,16,32,64"}
        ),
    ),
)
