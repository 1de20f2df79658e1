"""`transpose`: no arithmetic, but what is read along rows is written along columns."""

from __future__ import annotations

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.op import Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Sizes, TensorSpec
from kernelviz.ops.transpose import best
from kernelviz.ops.transpose.reference import bound, reference
from kernelviz.ops.transpose.variants import VARIANTS
from kernelviz.ops.transpose.variants_published import triton_published


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Every element read once and written once; no arithmetic.

    >>> cost({"m": 1024, "n": 512}, 4)
    Cost(work_flop=0, read_bytes=2097152, written_bytes=2097152)
    """
    matrix_bytes = sizes["m"] * sizes["n"] * itemsize_bytes
    return Cost(work_flop=0, read_bytes=matrix_bytes, written_bytes=matrix_bytes)


TRANSPOSE = Op(
    name="transpose",
    family="layout",
    summary="Transposition of a matrix",
    formula="y = xᵀ",
    axes=(
        Axis(name="m", caption="rows", default="2^8..2^14", cpu_default="256,1024,2048"),
        Axis(name="n", caption="columns", default="m", cpu_default="m"),
    ),
    dtypes=("fp32", "fp16", "bf16"),
    inputs=(TensorSpec(name="x_MN", axes=("m", "n")),),
    outputs=(TensorSpec(name="y_NM", axes=("n", "m")),),
    cost=cost,
    reference=reference,
    bound=bound,
    rule="exact: y = xᵀ, no rounding",
    baseline="torch_eager",
    best=best.transpose,
    first=("torch_eager", "torch_compile", "triton_tile", "cuda_naive", "cuda_padded_tile", "cuda_vec16"),
    variants=(*VARIANTS, triton_published),
    presets=(
        Preset(name="large", caption="16384 × 16384: 2 GiB moved in fp32", sizes={"m": "2^14", "n": "2^14"}),
        Preset(name="tall", caption="Many short rows: 2^26 elements", sizes={"m": "2^26/n", "n": "16,64,256,1024"}),
        Preset(name="wide", caption="Few long rows: 2^26 elements", sizes={"m": "16,64,256,1024", "n": "2^26/m"}),
        Preset(
            name="odd",
            caption="Rows and columns that are not whole 16-byte vectors",
            sizes={"m": "4095,8191,16383", "n": "m"},
        ),
        Preset(
            name="llama-3-8b",
            caption="Llama 3 8B: weights of the attention and of the feed-forward layer",
            sizes={"m": "4096", "n": "1024,4096,14336"},
        ),
    ),
)
