"""The casts: as memory-bound as a copy, with fewer bytes written than read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import Cost
from kernelviz.ops.cast import best
from kernelviz.ops.cast.reference import bound, rounded
from kernelviz.ops.cast.variants import ladder
from kernelviz.ops.catalog.op import CostModel, Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Sizes, Tensors, TensorSpec
from kernelviz.ops.catalog.variant import TARGETS

if TYPE_CHECKING:
    from torch import Tensor


def cost_to(target: str) -> CostModel:
    """Cost of a cast to that format.

    >>> cost_to("fp8")({"n": 1024}, 4)
    Cost(work_flop=0, read_bytes=4096, written_bytes=1024)
    """
    written_bytes = dtype_named(target).itemsize_bytes

    def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
        """Every number read once and written once, narrower; no arithmetic."""
        n = sizes["n"]
        return Cost(work_flop=0, read_bytes=n * itemsize_bytes, written_bytes=n * written_bytes)

    return cost


def _op(target: str, description: str, dtypes: tuple[str, ...], triton_targets: tuple[str, ...] = TARGETS) -> Op:
    def reference(x_N: Tensor) -> Tensors:
        """The nearest number of the format, ties to the even one."""
        return (rounded(x_N, target),)

    return Op(
        name=f"cast_{target}",
        family="elementwise",
        summary=f"Conversion of a vector to {description}",
        formula=f"y = {target}(x)",
        axes=(Axis(name="n", caption="elements", default="2^12..2^28", cpu_default="2^14,2^16,2^18,2^20,2^22"),),
        dtypes=dtypes,
        inputs=(TensorSpec(name="x_N", axes=("n",)),),
        outputs=(TensorSpec(name="y_N", axes=("n",), dtype=target),),
        cost=cost_to(target),
        reference=reference,
        bound=bound,
        rule="exact: y is the number of the format that is nearest to x, ties to even",
        baseline="torch_eager",
        best=best.cast,
        first=("torch_eager", "torch_compile", "triton_block", "cuda_scalar", "cuda_wide_store", "cuda_adaptive"),
        variants=ladder(dtype_named(target).torch_name, triton_targets),
        presets=(
            Preset(name="large", caption="Far larger than any L2: 256 MiB to 4 GiB of fp32", sizes={"n": "2^26..2^30"}),
        ),
        slab="n",
    )


OPS = (
    _op("fp16", "fp16: half the bytes written", ("fp32",)),
    _op("bf16", "bf16: half the bytes written", ("fp32",)),
    # Triton converts to E4M3 from compute capability 8.9 on.
    _op("fp8", "fp8 (E4M3): a quarter of the bytes written", ("fp32", "bf16"), ("sm_90", "sm_100")),
)
