"""`column_sum`: the whole matrix is read, one number a column is written. It is the gradient of a bias."""

from __future__ import annotations

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.op import Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Sizes, TensorSpec
from kernelviz.ops.column_reduction import best
from kernelviz.ops.column_reduction.reference import bound, reference
from kernelviz.ops.column_reduction.variants import VARIANTS


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """One addition an element; the matrix read once, one number a column written.

    >>> cost({"m": 1024, "n": 512}, 2)
    Cost(work_flop=524288, read_bytes=1048576, written_bytes=1024)
    """
    m, n = sizes["m"], sizes["n"]
    return Cost(work_flop=m * n, read_bytes=m * n * itemsize_bytes, written_bytes=n * itemsize_bytes)


COLUMN_SUM = Op(
    name="column_sum",
    family="reduction",
    summary="Sum of each column",
    formula="y = Σ x along each column",
    axes=(
        Axis(name="m", caption="rows", default="2^12", cpu_default="2^10"),
        Axis(name="n", caption="columns", default="2^7..2^17", cpu_default="2^8,2^10,2^12"),
    ),
    dtypes=("bf16", "fp16", "fp32"),
    inputs=(TensorSpec(name="x_MN", axes=("m", "n")),),
    outputs=(TensorSpec(name="y_N", axes=("n",)),),
    cost=cost,
    reference=reference,
    bound=bound,
    rule="|error| ≤ 1.01 u |y| + √M (2 ‖x‖ + |y|) 2⁻²⁴: added in fp32 in any order, rounded once to the output's format",
    baseline="torch_eager",
    best=best.columns,
    first=("torch_eager", "torch_compile", "cuda_column_per_thread", "triton_split", "cuda_split"),
    variants=VARIANTS,
    presets=(
        Preset(
            name="bias-gradient",
            caption="Gradients of the biases of a layer: 512 to 16384 tokens of 4096 features",
            sizes={"m": "512,2048,8192,16384", "n": "4096"},
        ),
        Preset(
            name="columns",
            caption="As many rows as make 256 MiB in bf16, 16 to 131072 columns",
            sizes={"m": "2^27/n", "n": "16,128,1024,8192,131072"},
        ),
        Preset(
            name="odd",
            caption="Columns that are not whole 16-byte vectors",
            sizes={"m": "8192", "n": "4095,4097,8191"},
        ),
        Preset(name="large", caption="1 GiB in bf16", sizes={"m": "2^29/n", "n": "4096,32768"}),
    ),
)
