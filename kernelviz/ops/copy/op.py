"""The ops `copy` and `strided_copy`: no arithmetic, so `copy` is the fastest that an op with one read a write can be."""

from __future__ import annotations

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.op import Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Sizes, TensorSpec
from kernelviz.ops.copy import best
from kernelviz.ops.copy.reference import bound, reference, strided_reference
from kernelviz.ops.copy.variants import VARIANTS
from kernelviz.ops.copy.variants_strided_copy import STRIDED_VARIANTS


def strided_cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """The n copied elements, read and written; not the elements between them.

    >>> strided_cost({"n": 1024, "s": 64}, 4)
    Cost(work_flop=0, read_bytes=4096, written_bytes=4096)
    """
    # The bytes that must be moved, not those that are: caches read whole sectors of 32 bytes from memory, so from a stride of
    # 32 bytes on (8 fp32 numbers) every 4 bytes come with 28 others that no thread needs. On an H200 2^24 elements take 134 us at
    # a stride of 8 and 256 us at 16. Both are 4.5 TB/s if the latter moves 64 bytes an element, the smallest unit of its memory.
    n = sizes["n"]
    return Cost(work_flop=0, read_bytes=n * itemsize_bytes, written_bytes=n * itemsize_bytes)


STRIDED_COPY = Op(
    name="strided_copy",
    family="elementwise",
    summary="Copy of one element in every s: what a stride costs",
    formula="y[i] = x[i · s]",
    axes=(
        Axis(name="n", caption="elements copied", default="2^24", cpu_default="2^16"),
        Axis(name="s", caption="stride in elements", default="1,2,4,8,16,32,64", cpu_default="1,2,4,8,16,32,64"),
    ),
    dtypes=("fp32", "fp16", "bf16"),
    inputs=(TensorSpec(name="x_NS", axes=("n", "s")),),
    outputs=(TensorSpec(name="y_N", axes=("n",)),),
    cost=strided_cost,
    reference=strided_reference,
    bound=bound,
    rule="exact: y = x, no rounding",
    baseline="torch_eager",
    best=best.strided,
    first=("torch_eager", "torch_compile", "triton_block", "cuda_scalar", "cuda_unrolled", "cuda_adaptive"),
    variants=STRIDED_VARIANTS,
    presets=(
        Preset(
            name="strides",
            caption="2^24 elements, strides up to 64: what memory moves at the least shows as a knee",
            sizes={"n": "2^24", "s": "1,2,3,4,5,6,7,8,9,10,12,14,16,32,64"},
        ),
        Preset(name="large", caption="2^26 elements of 1 to 16 GiB in fp32", sizes={"n": "2^26", "s": "4,16,64"}),
    ),
    slab="n",
)


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Every element read once and written once; no arithmetic.

    >>> cost({"n": 1024}, 4)
    Cost(work_flop=0, read_bytes=4096, written_bytes=4096)
    """
    n = sizes["n"]
    return Cost(work_flop=0, read_bytes=n * itemsize_bytes, written_bytes=n * itemsize_bytes)


OPS = (
    Op(
        name="copy",
        family="elementwise",
        summary="Copy of a vector: the reference for the speed of memory-bound ops",
        formula="y = x",
        axes=(
            Axis(name="n", caption="elements", default="2^12..2^28", cpu_default="2^14,2^16,2^18,2^20,2^22"),
            Axis(
                name="o",
                caption="bytes by which both vectors begin after an aligned address",
                default="0",
                cpu_default="0",
            ),
        ),
        dtypes=("fp32", "fp16", "bf16"),
        inputs=(TensorSpec(name="x_N", axes=("n",), offset="o"),),
        outputs=(TensorSpec(name="y_N", axes=("n",)),),
        cost=cost,
        reference=reference,
        bound=bound,
        rule="exact: y = x, no rounding",
        baseline="torch_eager",
        best=best.copy,
        first=(
            "torch_eager",
            "torch_compile",
            "triton_block",
            "triton_persistent",
            "cuda_scalar",
            "cuda_vec16",
            "cuda_vec16_unrolled",
            "cuda_bulk",
            "cuda_adaptive",
        ),
        variants=VARIANTS,
        presets=(
            Preset(name="small", caption="Small enough for the L2 of any GPU", sizes={"n": "2^10..2^20", "o": "0"}),
            Preset(
                name="large",
                caption="Far larger than any L2: 256 MiB to 4 GiB in fp32",
                sizes={"n": "2^26..2^30", "o": "0"},
            ),
            Preset(
                name="alignment",
                caption="2^26 elements that begin 0 to 64 bytes after an aligned address",
                sizes={"n": "2^26", "o": "0,4,8,12,16,32,48,64"},
            ),
        ),
        slab="n",
    ),
    STRIDED_COPY,
)
